// The safetensors reader. Checks in the order of use: lengths, JSON (depth, duplicate keys), each tensor's fields, then
// the cover of the data section. Nothing is allocated by a size the file merely claims.
#include "runtime/Core/SafeTensors.h"

#include "plimsoll/Support/Units.h"
#include "runtime/Artifact/Types.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

namespace plimsoll::runtime {

using nlohmann::json;

static constexpr uint64_t kMaxHeaderBytes = uint64_t{1} << 24; // some 150,000 tensors
static constexpr int kMaxDepth = 4;                            // header { tensor { shape [ number
static constexpr size_t kMaxTensorRank = 32;

/// A tensor as the header describes it.
struct Described {
  NamedTensor tensor;
  uint64_t begin = 0, end = 0; ///< bytes from the start of the data section
};

/// Parses the header; refuses duplicate keys and deep nesting, which nlohmann's document would hide.
static Result<json> parseHeader(std::string_view text) {
  std::vector<std::set<std::string>> keys;
  std::string problem;
  auto watch = [&](int depth, json::parse_event_t event, json &value) {
    if (depth > kMaxDepth && problem.empty())
      problem = "nested too deep";
    if (event == json::parse_event_t::object_start)
      keys.emplace_back();
    if (event == json::parse_event_t::object_end && !keys.empty())
      keys.pop_back();
    if (event == json::parse_event_t::key && !keys.empty() && !keys.back().insert(value.get<std::string>()).second &&
        problem.empty())
      problem = "the key " + inQuotes(value.get<std::string>()) + " occurs twice";
    return problem.empty();
  };
  json header = json::parse(text.begin(), text.end(), watch, /*allow_exceptions=*/false);
  if (!problem.empty())
    return badInput("the header is damaged: " + problem);
  if (header.is_discarded() || !header.is_object())
    return badInput("the header is not a JSON object");
  return header;
}

static std::optional<artifact::DType> parseDtype(std::string_view text) {
  using artifact::DType;
  static const std::pair<std::string_view, DType> known[] = {
      {"F32", DType::F32}, {"F64", DType::F64}, {"F16", DType::F16}, {"BF16", DType::BF16}, {"I64", DType::I64},
      {"I32", DType::I32}, {"I16", DType::I16}, {"I8", DType::I8},   {"U8", DType::U8},     {"BOOL", DType::Bool}};
  for (const auto &[name, dtype] : known)
    if (name == text)
      return dtype;
  return std::nullopt;
}

/// Reads an array of non-negative integers below 2^62.
static bool readIntegers(const json &value, std::vector<int64_t> &result) {
  if (!value.is_array())
    return false;
  for (const json &item : value) {
    if (!item.is_number_unsigned() || item.get<uint64_t>() > uint64_t{1} << 62)
      return false;
    result.push_back(static_cast<int64_t>(item.get<uint64_t>()));
  }
  return true;
}

/// One entry of the header: fields of the right kind, and a size that fits the shape.
static Result<Described> describe(const std::string &name, const json &value) {
  std::string where = "tensor " + inQuotes(name);
  if (!value.is_object() || value.size() != 3 || !value.contains("dtype") || !value.contains("shape") ||
      !value.contains("data_offsets"))
    return badInput(where + " must have exactly dtype, shape and data_offsets");
  Described result;
  result.tensor.name = name;
  if (!value["dtype"].is_string())
    return badInput(where + " has a dtype that is not text");
  std::optional<artifact::DType> dtype = parseDtype(value["dtype"].get_ref<const std::string &>());
  if (!dtype)
    return badInput(where + " has the unsupported dtype " + inQuotes(value["dtype"].get_ref<const std::string &>()) +
                    ", expected F32, F64, F16, BF16, I64, I32, I16, I8, U8 or BOOL");
  result.tensor.dtype = *dtype;
  std::vector<int64_t> offsets;
  if (!readIntegers(value["shape"], result.tensor.shape) || result.tensor.shape.size() > kMaxTensorRank)
    return badInput(where + " has a shape that is not a short list of sizes");
  if (!readIntegers(value["data_offsets"], offsets) || offsets.size() != 2 || offsets[0] > offsets[1])
    return badInput(where + " has data_offsets that are not a begin and an end");
  result.begin = static_cast<uint64_t>(offsets[0]);
  result.end = static_cast<uint64_t>(offsets[1]);
  std::optional<uint64_t> bytes = artifact::byteCount(*dtype, result.tensor.shape);
  if (!bytes || *bytes != result.end - result.begin)
    return badInput(where + " has " + groupedDigits(result.end - result.begin) + " bytes of data, its shape takes " +
                    (bytes ? groupedDigits(*bytes) : std::string("more than can be addressed")));
  return result;
}

/// Sorted by place, the tensors cover [0, `dataBytes`) exactly once.
static Status checkCover(std::vector<Described> &tensors, uint64_t dataBytes) {
  auto place = [](const Described &t) { return std::tuple(t.begin, t.end, std::string_view(t.tensor.name)); };
  std::sort(tensors.begin(), tensors.end(), [&](const auto &a, const auto &b) { return place(a) < place(b); });
  uint64_t at = 0;
  for (const Described &described : tensors) {
    if (described.begin != at)
      return badInput("tensor " + inQuotes(described.tensor.name) + " starts at byte " +
                      groupedDigits(described.begin) + " of the data, expected " + groupedDigits(at) +
                      (described.begin < at ? " (it overlaps the one before)" : " (there is a hole)"));
    at = described.end;
    if (at > dataBytes)
      return badInput("tensor " + inQuotes(described.tensor.name) + " ends at byte " + groupedDigits(at) +
                      " of the data, the file holds " + groupedDigits(dataBytes) + "; it is truncated");
  }
  if (at != dataBytes)
    return badInput("the tensors take " + groupedDigits(at) + " bytes, the file holds " + groupedDigits(dataBytes));
  return Status::ok();
}

static Status readMetadata(const json &value, std::map<std::string, std::string> &notes) {
  if (!value.is_object())
    return badInput("__metadata__ is not a map");
  for (const auto &[key, text] : value.items()) {
    if (!text.is_string())
      return badInput("__metadata__ key " + inQuotes(key) + " is not text");
    notes[key] = text.get<std::string>();
  }
  return Status::ok();
}

/// Splits the file into header text and data.
static Result<std::string_view> headerText(std::span<const std::byte> content) {
  uint64_t length = 0;
  if (content.size() < sizeof length)
    return badInput(groupedDigits(content.size()) + " bytes are too few for a safetensors file");
  memcpy(&length, content.data(), sizeof length);
  if (length > kMaxHeaderBytes)
    return badInput("the header would have " + groupedDigits(length) +
                    " bytes, at most 16,777,216 are accepted; "
                    "this is not a safetensors file");
  if (length > content.size() - sizeof length)
    return badInput("the header has " + groupedDigits(length) + " bytes, the file only " +
                    groupedDigits(content.size()) + "; it is truncated");
  return std::string_view(reinterpret_cast<const char *>(content.data()) + sizeof length, length);
}

static Status readTensors(std::span<const std::byte> content, std::vector<NamedTensor> &list,
                          std::map<std::string, std::string> &notes) {
  Result<std::string_view> text = headerText(content);
  if (!text)
    return text.status();
  Result<json> header = parseHeader(*text);
  if (!header)
    return header.status();
  std::vector<Described> tensors;
  for (const auto &[name, value] : header->items()) {
    if (name == "__metadata__") {
      if (Status status = readMetadata(value, notes); !status)
        return status;
      continue;
    }
    Result<Described> described = describe(name, value);
    if (!described)
      return described.status();
    tensors.push_back(std::move(*described));
  }
  std::span<const std::byte> data = content.subspan(sizeof(uint64_t) + text->size());
  if (Status status = checkCover(tensors, data.size()); !status)
    return status;
  for (Described &described : tensors) {
    described.tensor.bytes = data.subspan(described.begin, described.end - described.begin);
    list.push_back(std::move(described.tensor));
  }
  std::sort(list.begin(), list.end(), [](const auto &a, const auto &b) { return a.name < b.name; });
  return Status::ok();
}

Result<SafeTensors> SafeTensors::parse(std::span<const std::byte> bytes, const std::string &name) {
  SafeTensors result;
  result.content = bytes;
  if (Status status = readTensors(bytes, result.list, result.notes); !status)
    return Status{status.code(), inQuotes(name) + ": " + status.message()};
  return result;
}

Result<SafeTensors> SafeTensors::open(const std::string &path, Links links) {
  Result<MappedFile> file = MappedFile::open(path, UINT64_MAX, links);
  if (!file)
    return file.status();
  Result<SafeTensors> result = parse(file->bytes(), path);
  if (result)
    result->mapping.push_back(std::move(*file));
  return result;
}

const NamedTensor *SafeTensors::find(std::string_view name) const {
  auto found = std::lower_bound(list.begin(), list.end(), name,
                                [](const NamedTensor &tensor, std::string_view text) { return tensor.name < text; });
  return found != list.end() && found->name == name ? &*found : nullptr;
}

} // namespace plimsoll::runtime
