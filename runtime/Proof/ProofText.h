// Texts of a proof (problems and certificates), packed for the artifact.
#pragma once

#include "plimsoll/Support/Status.h"
#include "runtime/Artifact/Artifact_generated.h"

#include <memory>
#include <string>
#include <string_view>

namespace plimsoll {

/// One zstd frame that states its content's size. Same text and library version, same bytes. Fails with BadInput when
/// the text is empty or longer than a reader accepts (rule A26).
Result<std::unique_ptr<artifact::CompressedTextT>> packText(std::string_view text);

/// The text. Allocates exactly `text_bytes`, after the frame was seen to state the same size and the size to be one
/// that rule A26 accepts; fails with BadInput when the frame is damaged or holds anything else.
Result<std::string> unpackText(const artifact::CompressedTextT &packed);

} // namespace plimsoll
