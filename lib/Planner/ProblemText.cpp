// Problems as text: a writer with one canonical spelling and a line-by-line reader. The format is in ProblemText.h.
#include "plimsoll/Planner/ProblemText.h"

#include <charconv>

namespace plimsoll::planner {

namespace {

constexpr std::string_view magic = "plimsoll-problem";
constexpr std::string_view hexDigits = "0123456789abcdef";

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    unsigned char byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      result += std::string("\\") + c;
    else if (c == '\n')
      result += "\\n";
    else if (c == '\t')
      result += "\\t";
    else if (c == '\r')
      result += "\\r";
    else if (byte < 0x20 || byte == 0x7f)
      result += std::string("\\x") + hexDigits[byte >> 4] + hexDigits[byte & 15];
    else
      result += c;
  }
  return result + "\"";
}

/// The shortest spelling that reads back as the same number.
std::string spelled(double value) {
  char text[40];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string reference(StorageId id) { return " %" + std::to_string(id); }

std::string_view accessName(AccessMode mode) {
  return mode == AccessMode::Read ? "read" : mode == AccessMode::Write ? "write" : "readwrite";
}

std::string writeStep(const Step &step) {
  std::string line = "step " + quoted(step.name);
  if (step.kind == StepKind::Copy)
    line += " copy";
  if (step.kind == StepKind::Wait)
    line += " wait " + std::to_string(step.waitsFor);
  for (const Access &access : step.accesses)
    line += " " + std::string(accessName(access.mode)) + reference(access.storage);
  for (const InPlaceCandidate &pair : step.inPlace)
    line += " inplace" + reference(pair.operand) + reference(pair.result);
  if (step.workspaceBytes)
    line += " workspace " + std::to_string(step.workspaceBytes);
  if (step.costSeconds != 0)
    line += " cost " + spelled(step.costSeconds);
  return line + "\n";
}

/// One line taken apart word by word. After a failure `error` says why and nothing more is read.
class LineReader {
public:
  explicit LineReader(std::string_view text) : rest(text) {}

  /// Next bare word, or empty at the end of the line or its comment.
  std::string_view word() {
    skipBlanks();
    size_t length = 0;
    while (length < rest.size() && rest[length] != ' ' && rest[length] != '\t')
      ++length;
    std::string_view found = rest.substr(0, length);
    rest.remove_prefix(length);
    return found;
  }

  bool atEnd() {
    skipBlanks();
    return rest.empty();
  }

  template <typename T> bool number(const char *what, T &value) {
    std::string_view found = word();
    auto [end, code] = std::from_chars(found.data(), found.data() + found.size(), value);
    if (code == std::errc() && end == found.data() + found.size() && !found.empty())
      return true;
    return fail("'" + std::string(found) + "' is not " + what);
  }

  bool storage(StorageId &id) {
    std::string_view found = word();
    if (found.size() > 1 && found.front() == '%') {
      auto [end, code] = std::from_chars(found.data() + 1, found.data() + found.size(), id);
      if (code == std::errc() && end == found.data() + found.size())
        return true;
    }
    return fail("'" + std::string(found) + "' is not a storage, expected %number");
  }

  bool string(std::string &value) {
    skipBlanks();
    if (rest.empty() || rest.front() != '"')
      return fail("expected a quoted string at '" + std::string(rest.substr(0, 20)) + "'");
    rest.remove_prefix(1);
    value.clear();
    while (!rest.empty() && rest.front() != '"')
      if (!character(value))
        return false;
    if (rest.empty())
      return fail("a quoted string does not end, expected '\"'");
    rest.remove_prefix(1);
    return true;
  }

  bool fail(std::string text) {
    if (error.empty())
      error = std::move(text);
    return false;
  }

  std::string error;

private:
  void skipBlanks() {
    while (!rest.empty() && (rest.front() == ' ' || rest.front() == '\t' || rest.front() == '\r'))
      rest.remove_prefix(1);
    if (!rest.empty() && rest.front() == '#')
      rest = {};
  }

  /// One character of a string, possibly escaped.
  bool character(std::string &value) {
    char c = rest.front();
    if (c != '\\') {
      value += c;
      rest.remove_prefix(1);
      return true;
    }
    char kind = rest.size() > 1 ? rest[1] : '\0';
    size_t which = std::string_view("\"\\ntr").find(kind);
    if (kind != '\0' && which != std::string_view::npos) {
      value += "\"\\\n\t\r"[which];
      rest.remove_prefix(2);
      return true;
    }
    unsigned byte = 0;
    if (kind == 'x' && rest.size() >= 4) {
      auto [end, code] = std::from_chars(rest.data() + 2, rest.data() + 4, byte, 16);
      if (code == std::errc() && end == rest.data() + 4) {
        value += static_cast<char>(byte);
        rest.remove_prefix(4);
        return true;
      }
    }
    return fail("unknown escape '" + std::string(rest.substr(0, 2)) + "', expected \\\" \\\\ \\n \\t \\r or \\xHH");
  }

  std::string_view rest;
};

class ProblemReader {
public:
  Result<Problem> read(std::string_view text) {
    for (size_t at = 0; at < text.size();) {
      size_t newline = std::min(text.find('\n', at), text.size());
      LineReader line(text.substr(at, newline - at));
      at = newline + 1;
      ++lineNumber;
      if (!line.atEnd() && !readLine(line))
        return badInput("line " + std::to_string(lineNumber) + ": " + line.error);
    }
    if (!started)
      return badInput("the problem text is empty, expected 'plimsoll-problem 1'");
    return std::move(problem);
  }

private:
  bool readLine(LineReader &line) {
    std::string_view keyword = line.word();
    if (!started)
      return readMagic(keyword, line);
    bool good = false;
    if (keyword == "alignment")
      good = line.number("a number of bytes", problem.alignment);
    else if (keyword == "storage")
      good = readStorage(line);
    else if (keyword == "step")
      good = readStep(line);
    else if (keyword == "input")
      good = line.storage(problem.inputs.emplace_back());
    else if (keyword == "output")
      good = line.storage(problem.outputs.emplace_back());
    else
      return line.fail("unknown line '" + std::string(keyword) +
                       "', expected alignment, storage, step, input or output");
    return good && (line.atEnd() || line.fail("unexpected '" + std::string(line.word()) + "' at the end of the line"));
  }

  bool readMagic(std::string_view keyword, LineReader &line) {
    if (keyword != magic)
      return line.fail("'" + std::string(keyword) + "' is no problem text, expected 'plimsoll-problem 1'");
    unsigned version = 0;
    if (!line.number("a version", version))
      return false;
    if (version != 1)
      return line.fail("version " + std::to_string(version) + " of the problem text, expected 1");
    started = true;
    return line.atEnd() || line.fail("unexpected '" + std::string(line.word()) + "' at the end of the line");
  }

  bool readStorage(LineReader &line) {
    Storage storage;
    storage.id = static_cast<StorageId>(problem.storages.size());
    bool hasBytes = false, hasClass = false;
    if (!line.string(storage.name))
      return false;
    while (!line.atEnd()) {
      std::string_view clause = line.word();
      bool good = true;
      if (clause == "bytes")
        good = hasBytes = line.number("a number of bytes", storage.bytes);
      else if (clause == "class")
        good = hasClass = readClass(line, storage.storageClass);
      else if (clause == "persistent")
        storage.persistent = true;
      else if (clause == "tier")
        good = readTier(line, storage.tier);
      else if (clause == "source")
        good = line.string(storage.source);
      else
        good = line.fail("unknown clause '" + std::string(clause) +
                         "', expected bytes, class, persistent, tier or source");
      if (!good)
        return false;
    }
    if (!hasBytes || !hasClass)
      return line.fail("storage '" + storage.name + "' has no " + (hasBytes ? "class" : "bytes"));
    problem.storages.push_back(std::move(storage));
    return true;
  }

  static bool readClass(LineReader &line, StorageClass &storageClass) {
    std::string_view name = line.word();
    if (parseStorageClass(name, storageClass))
      return true;
    std::string known;
    for (unsigned i = 0; i < storageClassCount; ++i)
      known += std::string(i ? " " : "") + std::string(storageClassName(static_cast<StorageClass>(i)));
    return line.fail("unknown class '" + std::string(name) + "', expected one of: " + known);
  }

  static bool readTier(LineReader &line, Tier &tier) {
    std::string_view name = line.word();
    return parseTier(name, tier) ||
           line.fail("unknown tier '" + std::string(name) + "', expected device, host or disk");
  }

  bool readStep(LineReader &line) {
    Step step;
    if (!line.string(step.name))
      return false;
    while (!line.atEnd())
      if (!readClause(line, step))
        return false;
    problem.steps.push_back(std::move(step));
    return true;
  }

  static bool readClause(LineReader &line, Step &step) {
    std::string_view clause = line.word();
    for (AccessMode mode : {AccessMode::Read, AccessMode::Write, AccessMode::ReadWrite})
      if (clause == accessName(mode))
        return line.storage(step.accesses.emplace_back(Access{noStorage, mode}).storage);
    if (clause == "inplace") {
      InPlaceCandidate &pair = step.inPlace.emplace_back();
      return line.storage(pair.operand) && line.storage(pair.result);
    }
    if (clause == "workspace")
      return line.number("a number of bytes", step.workspaceBytes);
    if (clause == "cost")
      return line.number("a number of seconds", step.costSeconds);
    if (clause == "copy" || clause == "wait") {
      if (step.kind != StepKind::Compute)
        return line.fail("a step is either one copy or one wait");
      step.kind = clause == "copy" ? StepKind::Copy : StepKind::Wait;
      return step.kind == StepKind::Copy || line.number("the number of a step", step.waitsFor);
    }
    return line.fail("unknown clause '" + std::string(clause) +
                     "', expected read, write, readwrite, inplace, workspace, cost, copy or wait");
  }

  Problem problem;
  size_t lineNumber = 0;
  bool started = false;
};

} // namespace

std::string writeProblem(const Problem &problem) {
  std::string text = std::string(magic) + " 1\nalignment " + std::to_string(problem.alignment) + "\n";
  for (const Storage &storage : problem.storages) {
    text += "storage " + quoted(storage.name) + " bytes " + std::to_string(storage.bytes) + " class " +
            std::string(storageClassName(storage.storageClass)) + (storage.persistent ? " persistent" : "");
    if (storage.tier != Tier::Device)
      text += " tier " + std::string(tierName(storage.tier));
    text += storage.source.empty() ? "\n" : " source " + quoted(storage.source) + "\n";
  }
  for (const Step &step : problem.steps)
    text += writeStep(step);
  for (StorageId id : problem.inputs)
    text += "input" + reference(id) + "\n";
  for (StorageId id : problem.outputs)
    text += "output" + reference(id) + "\n";
  return text;
}

Result<Problem> parseProblem(std::string_view text) { return ProblemReader().read(text); }

} // namespace plimsoll::planner
