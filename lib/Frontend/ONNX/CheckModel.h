// Structural checks of a model that has been read: versions and names.
#pragma once

#include "lib/Frontend/ONNX/Model.h"

namespace plimsoll::onnx {

/// The opsets that the importer knows; older ones miss rules it relies on, newer ones may change them.
inline constexpr int64_t oldestOpset = 13, newestOpset = 26;

/// Fails when the opset is missing or out of range.
Status checkVersions(const Model &model);
/// Removes initializers from the inputs (IR < 4 lists them there) and checks that every name has one producer and every
/// node reads only names produced before it.
Status checkNames(Model &model);

} // namespace plimsoll::onnx
