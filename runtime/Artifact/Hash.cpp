// xxh3-64 through the header-only form of xxHash, so that nothing has to be linked.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "runtime/Artifact/Files.h"
#include "runtime/Artifact/Hash.h"

#include <cstdio>

namespace plimsoll {

uint64_t hash64(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

uint64_t hash64(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

std::string hashText(uint64_t hash) {
  char text[17];
  snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

Result<std::string> hashFile(const std::string &path) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file)
    return file.status();
  return hashText(hash64(file->bytes()));
}

} // namespace plimsoll
