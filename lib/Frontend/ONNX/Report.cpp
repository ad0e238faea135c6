// Text and JSON forms of a report. Names come from the file, so control characters are replaced before they reach a
// terminal.
#include "lib/Frontend/ONNX/Report.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace plimsoll::onnx {

static std::string printable(std::string text) {
  for (char &c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      c = '?';
  if (text.size() > 1000)
    text = text.substr(0, 1000) + "...";
  return llvm::json::fixUTF8(text);
}

void ImportReport::add(Finding finding) {
  for (std::string *text : {&finding.subject, &finding.op, &finding.message, &finding.advice})
    *text = printable(std::move(*text));
  findings.push_back(std::move(finding));
}

bool ImportReport::hasErrors() const { return exitCode() != ExitCode::Ok; }

ExitCode ImportReport::exitCode() const {
  ExitCode worst = ExitCode::Ok;
  for (const Finding &finding : findings) {
    if (finding.severity != Severity::Error)
      continue;
    if (finding.exitCode == ExitCode::BadInput || finding.exitCode == ExitCode::Usage)
      return finding.exitCode;
    worst = finding.exitCode;
  }
  return worst;
}

size_t ImportReport::count(const std::string &code) const {
  size_t total = 0;
  for (const Finding &finding : findings)
    total += finding.code == code;
  return total;
}

static const char *severityName(Severity severity) {
  return severity == Severity::Error ? "error" : severity == Severity::Warning ? "warning" : "note";
}

static std::string line(const Finding &finding) {
  std::string text = std::string(severityName(finding.severity)) + ": " + finding.code + ": ";
  if (!finding.subject.empty())
    text += "'" + finding.subject + "'" + (finding.op.empty() ? "" : " (" + finding.op + ")") + ": ";
  text += finding.message;
  return finding.advice.empty() ? text : text + "; " + finding.advice;
}

std::string ImportReport::toText() const {
  std::string text;
  for (const Finding &finding : findings)
    text += line(finding) + "\n";
  return text;
}

std::string ImportReport::toJson() const {
  llvm::json::Array list;
  for (const Finding &finding : findings)
    list.push_back(llvm::json::Object{{"severity", severityName(finding.severity)},
                                      {"code", finding.code},
                                      {"subject", finding.subject},
                                      {"op", finding.op},
                                      {"message", finding.message},
                                      {"advice", finding.advice}});
  llvm::json::Value whole =
      llvm::json::Object{{"findings", std::move(list)}, {"exit_code", static_cast<int>(exitCode())}};
  std::string text;
  llvm::raw_string_ostream(text) << llvm::formatv("{0:2}", whole) << "\n";
  return text;
}

Status ImportReport::status() const {
  if (!hasErrors())
    return Status::ok();
  std::string text;
  for (const Finding &finding : findings)
    if (finding.severity == Severity::Error)
      text += (text.empty() ? "" : "\n") + line(finding);
  return {exitCode(), text};
}

} // namespace plimsoll::onnx
