// Tensor output files.
#include "tools/plimsoll-run/TensorFiles.h"

#include "runtime/Artifact/Types.h"
#include "runtime/Core/SafeTensors.h"

#include <fmt/format.h>

namespace plimsoll::runtime {
namespace {

const char *npyDescr(artifact::DType dtype) {
  switch (dtype) {
  case artifact::DType::F32:
    return "<f4";
  case artifact::DType::F64:
    return "<f8";
  case artifact::DType::F16:
    return "<f2";
  case artifact::DType::I64:
    return "<i8";
  case artifact::DType::I32:
    return "<i4";
  case artifact::DType::I16:
    return "<i2";
  case artifact::DType::I8:
    return "|i1";
  case artifact::DType::U8:
    return "|u1";
  case artifact::DType::Bool:
    return "|b1";
  default:
    return nullptr;
  }
}

Status writeNpy(const std::string &path, const OwnedTensor &tensor) {
  std::string header = npyHeader(tensor.dtype, tensor.shape);
  if (header.empty())
    return {ExitCode::Usage,
            fmt::format("{}: .npy has no type {}; write safetensors", path, artifact::dtypeName(tensor.dtype))};
  Result<AtomicFile> file = AtomicFile::create(path);
  if (!file)
    return file.status();
  if (Status status = file->write(header); !status)
    return status;
  if (Status status = file->write(tensor.bytes); !status)
    return status;
  return file->commit();
}

bool endsWith(const std::string &text, std::string_view end) {
  return text.size() >= end.size() && std::string_view(text).substr(text.size() - end.size()) == end;
}

} // namespace

std::string npyHeader(artifact::DType dtype, const std::vector<int64_t> &shape) {
  const char *descr = npyDescr(dtype);
  if (!descr)
    return {};
  std::string dims;
  for (int64_t dim : shape)
    dims += fmt::format("{},", dim);
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, dims);
  size_t total = (10 + text.size() + 1 + 63) / 64 * 64;
  text.resize(total - 10 - 1, ' ');
  text += '\n';
  std::string header = "\x93NUMPY";
  header += '\x01';
  header += '\0';
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

Status writeTensors(const std::string &path, const std::vector<OwnedTensor> &tensors) {
  if (endsWith(path, ".npy")) {
    if (tensors.size() != 1)
      return {ExitCode::Usage, fmt::format("{}: .npy holds one tensor, this is {}; choose one with --port, or write "
                                           "safetensors",
                                           path, tensors.size())};
    return writeNpy(path, tensors[0]);
  }
  std::vector<NamedTensor> list;
  for (const OwnedTensor &tensor : tensors)
    list.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.bytes});
  return writeSafeTensors(path, list);
}

} // namespace plimsoll::runtime
