// Tokens and text: a vocabulary file maps token texts (usually single characters) to numbers. JSON, either an object
// {"a": 0, "b": 1} or an array ["a", "b"].
#pragma once

#include "plimsoll/Support/Status.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::runtime {

class Vocabulary {
public:
  /// Reads a vocabulary file. Fails with BadInput when it is not of the form above, or a number is negative, twice
  /// there, or above 2^24.
  static Result<Vocabulary> read(const std::string &path);

  /// Token numbers of `text`, longest match first. Fails with Usage at the first text no token matches.
  Result<std::vector<int64_t>> encode(std::string_view text) const;

  /// Text of a token; "<7>" for a number the vocabulary does not have.
  std::string decode(int64_t token) const;

  size_t size() const { return numbers.size(); }

private:
  Status add(std::string text, int64_t number, const std::string &path);
  std::map<std::string, int64_t, std::less<>> numbers;
  std::map<int64_t, std::string> texts;
  size_t longest = 0; ///< bytes of the longest token
};

} // namespace plimsoll::runtime
