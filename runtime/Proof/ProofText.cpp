// zstd at a level that costs a few milliseconds a megabyte; problem texts shrink about tenfold.
#include "runtime/Proof/ProofText.h"

#include "plimsoll/Support/Units.h"
#include "runtime/Artifact/Types.h"

#include <zstd.h>

namespace plimsoll {

static constexpr int kLevel = 9;

Result<std::unique_ptr<artifact::CompressedTextT>> packText(std::string_view text) {
  if (text.empty() || text.size() > artifact::kMaxProofText)
    return badInput("a proof text of " + groupedDigits(text.size()) + " bytes, expected 1 to " +
                    groupedDigits(artifact::kMaxProofText));
  auto packed = std::make_unique<artifact::CompressedTextT>();
  packed->text_bytes = text.size();
  packed->bytes.resize(ZSTD_compressBound(text.size()));
  size_t size = ZSTD_compress(packed->bytes.data(), packed->bytes.size(), text.data(), text.size(), kLevel);
  if (ZSTD_isError(size))
    return internalError(std::string("zstd cannot pack a proof text: ") + ZSTD_getErrorName(size));
  packed->bytes.resize(size);
  packed->bytes.shrink_to_fit();
  return packed;
}

Result<std::string> unpackText(const artifact::CompressedTextT &packed) {
  if (packed.text_bytes == 0 || packed.text_bytes > artifact::kMaxProofText ||
      ZSTD_getFrameContentSize(packed.bytes.data(), packed.bytes.size()) != packed.text_bytes)
    return badInput("a proof text is not a zstd frame of the " + groupedDigits(packed.text_bytes) +
                    " bytes it claims; compile the artifact again");
  std::string text(packed.text_bytes, '\0');
  size_t size = ZSTD_decompress(text.data(), text.size(), packed.bytes.data(), packed.bytes.size());
  if (ZSTD_isError(size) || size != text.size())
    return badInput(std::string("a proof text is damaged (") +
                    (ZSTD_isError(size) ? ZSTD_getErrorName(size) : "it is shorter than it claims") +
                    "); copy or compile the artifact again");
  return text;
}

} // namespace plimsoll
