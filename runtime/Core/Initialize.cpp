// Initial values of variables.
#include "runtime/Core/Initialize.h"

#include "plimsoll/Support/Units.h"
#include "runtime/Artifact/Files.h"
#include "runtime/Artifact/Hash.h"
#include "runtime/Artifact/Types.h"
#include "runtime/Core/SafeTensors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

namespace plimsoll::runtime {

using namespace artifact;

/// bf16 bits of `value`, rounded to nearest even from the exact double.
static uint16_t bfloatBits(double value) {
  auto narrow = static_cast<float>(value);
  auto bits = std::bit_cast<uint32_t>(narrow);
  if (std::isnan(narrow))
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  // Double rounding is avoided by rounding to odd first: the lost part of the double only has to be non-zero.
  if (static_cast<double>(narrow) != value && std::isfinite(narrow)) {
    if (std::fabs(static_cast<double>(narrow)) > std::fabs(value))
      --bits;
    bits |= 1;
  }
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// IEEE half bits of `value`, rounded to nearest even.
static uint16_t halfBits(double value) {
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  double magnitude = std::fabs(value);
  if (std::isnan(value))
    return 0x7e00;
  if (magnitude >= 65520.0) // half way from the largest half, 65504, to the next step
    return sign | 0x7c00;
  if (magnitude < std::ldexp(1.0, -14)) // subnormal: multiples of 2^-24
    return sign | static_cast<uint16_t>(std::nearbyint(std::ldexp(magnitude, 24)));
  int exponent = std::ilogb(magnitude);
  auto mantissa = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, 10 - exponent))); // [1024, 2048]
  return sign | static_cast<uint16_t>((static_cast<uint32_t>(exponent + 15) << 10) + (mantissa - 1024));
}

template <typename T> static Status fillWith(T value, std::span<std::byte> target) {
  for (size_t at = 0; at + sizeof(T) <= target.size(); at += sizeof(T))
    memcpy(target.data() + at, &value, sizeof(T));
  return Status::ok();
}

template <typename T> static Status fillInteger(DType dtype, double value, std::span<std::byte> target) {
  double limit = std::ldexp(1.0, std::numeric_limits<T>::digits);
  double lowest = std::numeric_limits<T>::is_signed ? -limit : 0.0;
  if (!(value >= lowest && value < limit) || value != std::nearbyint(value))
    return badInput("the value " + std::to_string(value) + " does not fit " + dtypeName(dtype));
  return fillWith(static_cast<T>(value), target);
}

Status fillElements(DType dtype, double value, std::span<std::byte> target) {
  switch (dtype) {
  case DType::F32:
    return fillWith(static_cast<float>(value), target);
  case DType::F64:
    return fillWith(value, target);
  case DType::F16:
    return fillWith(halfBits(value), target);
  case DType::BF16:
    return fillWith(bfloatBits(value), target);
  case DType::I64:
    return fillInteger<int64_t>(dtype, value, target);
  case DType::I32:
    return fillInteger<int32_t>(dtype, value, target);
  case DType::I16:
    return fillInteger<int16_t>(dtype, value, target);
  case DType::I8:
    return fillInteger<int8_t>(dtype, value, target);
  case DType::U8:
    return fillInteger<uint8_t>(dtype, value, target);
  case DType::Bool:
    return fillWith(static_cast<uint8_t>(value != 0.0), target);
  }
  return internalError("fill of an unknown dtype");
}

static std::string shapeText(DType dtype, const std::vector<int64_t> &shape) {
  TensorViewT view;
  view.dtype = dtype;
  view.shape = shape;
  view.strides.assign(shape.size(), 1);
  std::string text = viewText(view);
  return text.substr(0, text.find('{'));
}

/// What is wrong with the tensor for `variable`, or nothing.
static std::optional<std::string> tensorProblem(const VariableT &variable, const SafeTensors &weights) {
  const NamedTensor *tensor = weights.find(variable.init_key);
  if (!tensor)
    return inQuotes(variable.init_key) + " is missing";
  if (tensor->dtype != variable.dtype || tensor->shape != variable.shape)
    return inQuotes(variable.init_key) + " is " + shapeText(tensor->dtype, tensor->shape) + ", expected " +
           shapeText(variable.dtype, variable.shape);
  return std::nullopt;
}

static Status checkTensors(const ArtifactT &artifact, const SafeTensors &weights, const std::string &path) {
  static constexpr size_t kListed = 8;
  std::vector<std::string> problems;
  for (const auto &variable : artifact.variables)
    if (variable->init == InitKind::File)
      if (auto problem = tensorProblem(*variable, weights))
        problems.push_back(*problem);
  if (problems.empty())
    return Status::ok();
  std::string text;
  for (size_t i = 0; i < problems.size() && i < kListed; ++i)
    text += (i ? "; " : "") + problems[i];
  if (problems.size() > kListed)
    text += "; and " + std::to_string(problems.size() - kListed) + " others";
  return badInput("the weights in " + inQuotes(path) + " do not fit the artifact: " + text);
}

/// Size and hash of the file the artifact was compiled with.
static Status checkIdentity(const ArtifactT &artifact, const SafeTensors &weights, const std::string &path) {
  const std::string &expected = artifact.provenance->weights_hash;
  uint64_t bytes = weights.fileBytes().size();
  if (artifact.weights_bytes != 0 && artifact.weights_bytes != bytes)
    return badInput("the weights file " + inQuotes(path) + " has " + groupedDigits(bytes) + " bytes, expected " +
                    groupedDigits(artifact.weights_bytes) + "; put the file of the compilation beside the artifact");
  std::string found = hashText(hashMapping(weights.fileBytes()));
  if (!expected.empty() && expected != found)
    return badInput("the weights file " + inQuotes(path) + " has the hash " + found + ", expected " +
                    inQuotes(expected) + "; put the file of the compilation beside the artifact");
  return Status::ok();
}

/// The opened and checked weights file; nothing when no variable needs one.
static Result<std::optional<SafeTensors>> openWeights(const ArtifactT &artifact, const SessionSource &source) {
  auto fromFile = [](const auto &variable) { return variable->init == InitKind::File; };
  if (std::none_of(artifact.variables.begin(), artifact.variables.end(), fromFile))
    return std::optional<SafeTensors>();
  bool chosen = !source.options.weightsPath.empty();
  std::string path = chosen ? source.options.weightsPath : folderOf(source.artifactPath) + "/" + artifact.weights_file;
  Result<SafeTensors> weights = SafeTensors::open(path, chosen ? Links::Follow : Links::Refuse);
  if (!weights)
    return weights.status();
  Status status = chosen ? Status::ok() : checkIdentity(artifact, *weights, path);
  if (status)
    status = checkTensors(artifact, *weights, path);
  if (!status)
    return status;
  return std::optional<SafeTensors>(std::move(*weights));
}

/// Fills that cannot be represented are found on an empty target, before anything is written.
static Status checkFills(const ArtifactT &artifact) {
  for (const auto &variable : artifact.variables)
    if (variable->init == InitKind::Fill)
      if (Status status = fillElements(variable->dtype, variable->fill, {}); !status)
        return badInput("variable " + inQuotes(variable->name) + ": " + status.message());
  return Status::ok();
}

Status initializeVariables(const ArtifactT &artifact, const SessionSource &source,
                           const std::function<std::span<std::byte>(size_t)> &storage) {
  if (Status status = checkFills(artifact); !status)
    return status;
  Result<std::optional<SafeTensors>> weights = openWeights(artifact, source);
  if (!weights)
    return weights.status();
  for (size_t i = 0; i < artifact.variables.size(); ++i) {
    const VariableT &variable = *artifact.variables[i];
    std::span<std::byte> target = storage(i);
    if (variable.init == InitKind::File)
      copyFromMapping((*weights)->find(variable.init_key)->bytes, target);
    else if (Status status =
                 fillElements(variable.dtype, variable.init == InitKind::Fill ? variable.fill : 0.0, target);
             !status)
      return status;
  }
  return Status::ok();
}

} // namespace plimsoll::runtime
