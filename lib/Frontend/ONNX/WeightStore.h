// Initial values of variables, by variable name. Bytes stay where the model put them (the parsed file or a mapped
// external file); nothing is copied but constants computed at import.
#pragma once

#include "lib/Frontend/ONNX/Model.h"

namespace plimsoll::onnx {

class WeightStore {
public:
  /// Little-endian row-major bytes of one variable; booleans take one byte. Valid as long as the store (or `owner`)
  /// lives.
  struct Entry {
    DType dtype = DType::Undefined;
    std::vector<int64_t> shape;
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner;
  };
  void add(const std::string &name, Entry entry) { entries[name] = std::move(entry); }
  /// Keeps bytes that import computed.
  void addOwned(const std::string &name, DType dtype, std::vector<int64_t> shape, std::vector<std::byte> bytes) {
    auto owned = std::make_shared<std::vector<std::byte>>(std::move(bytes));
    std::span<const std::byte> view(owned->data(), owned->size());
    entries[name] = Entry{dtype, std::move(shape), view, std::move(owned)};
  }
  /// Null when there is no such variable (its variable op then has a `fill`).
  const Entry *find(const std::string &name) const {
    auto found = entries.find(name);
    return found == entries.end() ? nullptr : &found->second;
  }
  /// All entries in name order.
  const std::map<std::string, Entry> &all() const { return entries; }

private:
  std::map<std::string, Entry> entries;
};

} // namespace plimsoll::onnx
