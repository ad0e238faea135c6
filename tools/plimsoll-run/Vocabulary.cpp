// Reading vocabularies and mapping between text and tokens.
#include "tools/plimsoll-run/Vocabulary.h"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>

namespace plimsoll::runtime {

Status Vocabulary::add(std::string text, int64_t number, const std::string &path) {
  if (text.empty() || number < 0 || number > (1 << 24))
    return badInput(fmt::format("{}: token {} has an empty text or a number outside [0, 16777216]", path, number));
  longest = std::max(longest, text.size());
  if (!texts.emplace(number, text).second || !numbers.emplace(std::move(text), number).second)
    return badInput(fmt::format("{}: token {} is there twice; make texts and numbers unique", path, number));
  return Status::ok();
}

Result<Vocabulary> Vocabulary::read(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return badInput(fmt::format("cannot open the vocabulary {}", path));
  auto json = nlohmann::json::parse(file, nullptr, false);
  if (!(json.is_object() || json.is_array()) || json.empty())
    return badInput(fmt::format("{} is not a vocabulary, expected JSON {{\"a\": 0, ...}} or [\"a\", ...]", path));
  Vocabulary vocabulary;
  int64_t index = 0;
  for (const auto &[key, value] : json.items()) {
    bool wellFormed = json.is_array() ? value.is_string() : value.is_number_integer();
    if (!wellFormed)
      return badInput(
          fmt::format("{}: entry {} is not a token, expected JSON {{\"a\": 0, ...}} or [\"a\", ...]", path, key));
    std::string text = json.is_array() ? value.get<std::string>() : key;
    int64_t number = json.is_array() ? index++ : value.get<int64_t>();
    if (Status status = vocabulary.add(std::move(text), number, path); !status)
      return status;
  }
  return vocabulary;
}

Result<std::vector<int64_t>> Vocabulary::encode(std::string_view text) const {
  std::vector<int64_t> tokens;
  for (size_t at = 0; at < text.size();) {
    size_t length = std::min(longest, text.size() - at);
    auto found = numbers.end();
    for (; length > 0 && found == numbers.end(); --length)
      found = numbers.find(text.substr(at, length));
    if (found == numbers.end())
      return Status(ExitCode::Usage,
                    fmt::format("the prompt has text at byte {} that no token of the vocabulary matches; "
                                "use other characters or --prompt-tokens",
                                at));
    tokens.push_back(found->second);
    at += found->first.size();
  }
  return tokens;
}

std::string Vocabulary::decode(int64_t token) const {
  auto found = texts.find(token);
  return found == texts.end() ? fmt::format("<{}>", token) : found->second;
}

} // namespace plimsoll::runtime
