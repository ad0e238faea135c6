// Parser of the --data grammar: a cursor over the text, one function per rule.
#include "runtime/Data/DataSpec.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <set>
#include <span>

namespace plimsoll::runtime {
namespace {

struct KindRule {
  std::string_view kind;
  std::vector<std::string_view> options;
};

const std::vector<KindRule> &kindRules() {
  static const std::vector<KindRule> rules = {
      {"tokens", {"u16", "u32", "shift", "stride", "vocab"}},
      {"npy", {"scale", "offset"}},
      {"idx", {"scale", "offset"}},
      {"safetensors", {"key", "scale", "offset"}},
      {"constant", {}},
  };
  return rules;
}

std::string listed(const std::vector<std::string_view> &names) {
  return names.empty() ? std::string("none") : fmt::format("{}", fmt::join(names, ", "));
}

Status usage(std::string text) { return {ExitCode::Usage, std::move(text)}; }

/// Position in the text being parsed; skips spaces between tokens.
struct Scanner {
  std::string_view text;
  size_t at = 0;

  void skipSpaces() {
    while (at < text.size() && text[at] == ' ')
      ++at;
  }
  bool take(char c) {
    skipSpaces();
    if (at >= text.size() || text[at] != c)
      return false;
    ++at;
    return true;
  }
  /// Characters up to one of `stops`, or the inside of a quoted string. False when a quote is not closed.
  bool word(std::string_view stops, std::string &out) {
    skipSpaces();
    if (at < text.size() && text[at] == '"')
      return quoted(out);
    size_t begin = at;
    while (at < text.size() && stops.find(text[at]) == std::string_view::npos)
      ++at;
    out = text.substr(begin, at - begin);
    while (!out.empty() && out.back() == ' ')
      out.pop_back();
    return true;
  }
  bool quoted(std::string &out) {
    size_t end = text.find('"', at + 1);
    if (end == std::string_view::npos)
      return false;
    out = text.substr(at + 1, end - at - 1);
    at = end + 1;
    return true;
  }
};

Status syntaxError(std::string_view text, std::string_view what) {
  return usage(fmt::format("--data '{}': {}, expected PORT=KIND(PATH,OPTION=VALUE...), for example "
                           "ids=tokens(train.bin,u16)",
                           text, what));
}

const KindRule *findKind(std::string_view kind) {
  for (const KindRule &rule : kindRules())
    if (rule.kind == kind)
      return &rule;
  return nullptr;
}

Status parseOption(std::string_view text, const KindRule &rule, Scanner &scan, DataSpec &spec) {
  std::string key, value;
  if (!scan.word("=,)", key) || key.empty())
    return syntaxError(text, "an option is empty or its quote is not closed");
  if (scan.take('=') && (!scan.word(",)", value) || value.empty()))
    return syntaxError(text, fmt::format("option {} has no value or its quote is not closed", key));
  if (std::find(rule.options.begin(), rule.options.end(), key) == rule.options.end())
    return usage(fmt::format("--data '{}': {} has no option '{}'; its options are: {}", text, rule.kind, key,
                             listed(rule.options)));
  if (!spec.options.emplace(key, value).second)
    return usage(fmt::format("--data '{}': option '{}' is given twice", text, key));
  return Status::ok();
}

} // namespace

Result<DataSpec> parseDataSpec(std::string_view text) {
  DataSpec spec;
  Scanner scan{text};
  if (!scan.word("=", spec.port) || spec.port.empty() || !scan.take('='))
    return syntaxError(text, "no port name before '='");
  if (!scan.word("(", spec.kind) || spec.kind.empty() || !scan.take('('))
    return syntaxError(text, "no KIND( after '='");
  const KindRule *rule = findKind(spec.kind);
  if (!rule) {
    std::vector<std::string_view> kinds;
    for (const KindRule &known : kindRules())
      kinds.push_back(known.kind);
    return usage(fmt::format("--data '{}': unknown kind '{}', expected one of: {}", text, spec.kind, listed(kinds)));
  }
  if (!scan.word(",)", spec.path) || spec.path.empty())
    return syntaxError(text, "the path is empty or its quote is not closed");
  while (scan.take(','))
    if (Status status = parseOption(text, *rule, scan, spec); !status)
      return status;
  if (!scan.take(')'))
    return syntaxError(text, "the closing ')' is missing");
  scan.skipSpaces();
  if (scan.at != text.size())
    return syntaxError(text, fmt::format("'{}' follows the closing ')'", text.substr(scan.at)));
  return spec;
}

Result<std::vector<DataSpec>> parseDataSpecs(const std::vector<std::string> &texts) {
  std::vector<DataSpec> specs;
  std::set<std::string> ports;
  for (const std::string &text : texts) {
    Result<DataSpec> spec = parseDataSpec(text);
    if (!spec)
      return spec.status();
    if (!ports.insert(spec->port).second)
      return usage(fmt::format("--data names port '{}' twice; give each port one source", spec->port));
    specs.push_back(std::move(*spec));
  }
  return specs;
}

Result<uint64_t> unsignedOption(const DataSpec &spec, const std::string &key, uint64_t fallback) {
  auto found = spec.options.find(key);
  if (found == spec.options.end())
    return fallback;
  const std::string &text = found->second;
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return usage(fmt::format("--data {}={}(...): {}={} is not a whole number >= 0", spec.port, spec.kind, key, text));
  return value;
}

Result<double> numberOption(const DataSpec &spec, const std::string &key, double fallback) {
  auto found = spec.options.find(key);
  if (found == spec.options.end())
    return fallback;
  const std::string &text = found->second;
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return usage(fmt::format("--data {}={}(...): {}={} is not a finite number", spec.port, spec.kind, key, text));
  return value;
}

} // namespace plimsoll::runtime
