// xxh3-64 through the header-only form of xxHash, so that nothing has to be linked.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "runtime/Artifact/Files.h"
#include "runtime/Artifact/Hash.h"

#include <algorithm>
#include <cstdio>

namespace plimsoll {

uint64_t hash64(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

uint64_t hash64(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

uint64_t hash64Except(std::span<const std::byte> bytes, size_t position) {
  constexpr uint64_t zero = 0;
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  XXH3_64bits_update(&state, bytes.data(), position);
  XXH3_64bits_update(&state, &zero, sizeof zero);
  XXH3_64bits_update(&state, bytes.data() + position + sizeof zero, bytes.size() - position - sizeof zero);
  return XXH3_64bits_digest(&state);
}

uint64_t hashMapping(std::span<const std::byte> mapped) {
  constexpr size_t block = size_t{1} << 20;
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  for (size_t at = 0; at < mapped.size(); at += block) {
    std::span<const std::byte> part = mapped.subspan(at, std::min(block, mapped.size() - at));
    XXH3_64bits_update(&state, part.data(), part.size());
    dropMappedPages(part);
  }
  return XXH3_64bits_digest(&state);
}

std::string hashText(uint64_t hash) {
  char text[17];
  snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

Result<std::string> hashFile(const std::string &path) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file)
    return file.status();
  return hashText(hashMapping(file->bytes()));
}

} // namespace plimsoll
