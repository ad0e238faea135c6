// The safetensors writer.
#include "plimsoll/Support/Units.h"
#include "runtime/Artifact/Types.h"
#include "runtime/Core/SafeTensors.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace plimsoll::runtime {

static const char *dtypeText(artifact::DType dtype) {
  static const char *const names[] = {"F32", "F64", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "BOOL"};
  return names[static_cast<size_t>(dtype)];
}

static Status checkTensors(std::span<const NamedTensor> tensors, const std::map<std::string, std::string> &metadata) {
  std::set<std::string_view> names;
  for (const NamedTensor &tensor : tensors) {
    if (tensor.name.empty() || tensor.name == "__metadata__" || !isUtf8(tensor.name))
      return badInput("tensor name " + inQuotes(tensor.name) + " is empty, reserved or not UTF-8 text");
    if (!names.insert(tensor.name).second)
      return badInput("two tensors are called " + inQuotes(tensor.name));
    auto bytes = artifact::byteCount(tensor.dtype, tensor.shape);
    if (artifact::dtypeBytes(tensor.dtype) == 0 || !bytes || *bytes != tensor.bytes.size())
      return badInput("tensor " + inQuotes(tensor.name) + " has " + groupedDigits(tensor.bytes.size()) +
                      " bytes, its shape takes " + (bytes ? groupedDigits(*bytes) : std::string("too many")));
  }
  for (const auto &[key, text] : metadata)
    if (!isUtf8(key) || !isUtf8(text))
      return badInput("metadata " + inQuotes(key) + " is not UTF-8 text");
  return Status::ok();
}

/// The header with the data of `order` laid out one after the other, padded with spaces to a multiple of 8 bytes.
static std::string headerOf(const std::vector<const NamedTensor *> &order,
                            const std::map<std::string, std::string> &metadata) {
  nlohmann::json header = nlohmann::json::object();
  if (!metadata.empty())
    header["__metadata__"] = metadata;
  uint64_t at = 0;
  for (const NamedTensor *tensor : order) {
    uint64_t end = at + tensor->bytes.size();
    header[tensor->name] = {{"dtype", dtypeText(tensor->dtype)}, {"shape", tensor->shape}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = header.dump();
  text.resize(alignUp(text.size(), 8), ' ');
  return text;
}

static Status writeAll(AtomicFile &file, const std::string &header, const std::vector<const NamedTensor *> &order) {
  uint64_t length = header.size();
  if (Status status = file.write(std::as_bytes(std::span(&length, 1))); !status)
    return status;
  if (Status status = file.write(header); !status)
    return status;
  for (const NamedTensor *tensor : order)
    if (Status status = file.write(tensor->bytes); !status)
      return status;
  return file.commit();
}

Status writeSafeTensors(const std::string &path, std::span<const NamedTensor> tensors,
                        const std::map<std::string, std::string> &metadata) {
  if (Status status = checkTensors(tensors, metadata); !status)
    return {status.code(), "cannot write " + inQuotes(path) + ": " + status.message()};
  std::vector<const NamedTensor *> order;
  for (const NamedTensor &tensor : tensors)
    order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const NamedTensor *a, const NamedTensor *b) {
    uint64_t sizeA = artifact::dtypeBytes(a->dtype), sizeB = artifact::dtypeBytes(b->dtype);
    return sizeA != sizeB ? sizeA > sizeB : a->name < b->name;
  });
  Result<AtomicFile> file = AtomicFile::create(path);
  if (!file)
    return file.status();
  return writeAll(*file, headerOf(order, metadata), order);
}

} // namespace plimsoll::runtime
