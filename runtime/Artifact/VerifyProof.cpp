// The rules of what an artifact says about its plans: A26 (proofs) and A27 (the budget-time curve). The reader judges
// sizes and numbers only; nothing is unpacked here, so that loading an artifact costs no memory for its proofs.
// Whether a proof proves what it says is checked by plimsoll-inspect check (runtime/Proof).
#include "runtime/Artifact/Verifier.h"

#include <cmath>

namespace plimsoll::artifact {

/// The most a frame may claim for each of its bytes: zstd's own limit for a repeated byte.
static constexpr uint64_t kMaxProofRatio = 1u << 15;
static constexpr size_t kMaxCurvePoints = 4096;

void verifyProofTables(const EntryT &entry, const std::string &where, Findings &findings) {
  const PlanProofT *proof = entry.proof.get();
  if (!proof)
    return;
  auto check = [&](const ExtraTimeBoundT *bound, const std::string &place) {
    if (!bound || bound->proof > BoundProof::MAX)
      findings.add("A3", place + " has no bound or one of an unknown kind");
  };
  check(proof->bound.get(), where + " proof");
  if (!proof->problem)
    findings.add("A3", where + " proof has no problem");
  for (size_t i = 0; i < proof->explanations.size() && !findings.enough(); ++i)
    if (!proof->explanations[i] || proof->explanations[i]->fate > Fate::MAX)
      findings.add("A3", where + " explanation " + std::to_string(i) + " is missing or of an unknown fate");
  for (size_t i = 0; i < proof->curve.size() && !findings.enough(); ++i) {
    std::string place = where + " curve point " + std::to_string(i);
    if (proof->curve[i])
      check(proof->curve[i]->bound.get(), place);
    else
      findings.add("A3", place + " is missing");
  }
}

namespace {

/// The proof of one entry.
class ProofVerifier {
public:
  ProofVerifier(const EntryT &judged, Findings &list)
      : entry(judged), proof(*judged.proof), findings(list), where("entry " + inQuotes(judged.name)) {}

  void run() {
    text(*proof.problem, "problem");
    numbers();
    bound(*proof.bound, where);
    if (proof.steps.empty())
      findings.add("A26", where + " has a proof without steps");
    if (proof.peak_floor_bytes > entry.peak_bytes)
      findings.add("A26", where + " has a proved floor of " + groupedDigits(proof.peak_floor_bytes) +
                              " bytes above its peak of " + groupedDigits(entry.peak_bytes));
    if (proof.budget_bytes != 0 && entry.peak_bytes > proof.budget_bytes)
      findings.add("A26", where + " has a peak of " + groupedDigits(entry.peak_bytes) + " bytes over its budget of " +
                              groupedDigits(proof.budget_bytes));
    for (const auto &explanation : proof.explanations)
      if (!findings.enough())
        explained(*explanation);
    curve();
  }

private:
  void text(const CompressedTextT &compressed, const std::string &what) {
    uint64_t packed = compressed.bytes.size();
    if (packed == 0 || compressed.text_bytes == 0 || compressed.text_bytes > kMaxProofText ||
        compressed.text_bytes / kMaxProofRatio > packed)
      findings.add("A26", where + " " + what + " claims " + groupedDigits(compressed.text_bytes) +
                              " bytes of text in " + groupedDigits(packed) + ", at most " +
                              groupedDigits(kMaxProofText) + " are accepted");
  }

  static bool isTime(double seconds) { return std::isfinite(seconds) && seconds >= 0; }
  /// A cost of something that may be impossible.
  static bool isCost(double seconds) { return seconds >= 0; }

  void numbers() {
    if (!isTime(proof.keep_all_seconds) || !isTime(proof.seconds) || !isTime(proof.stall_seconds) ||
        proof.stall_seconds > proof.seconds)
      findings.add("A26", where + " predicts impossible seconds");
  }

  void bound(const ExtraTimeBoundT &judged, const std::string &place) {
    if (!isTime(judged.seconds))
      findings.add("A26", place + " has an impossible time bound");
    bool certified = judged.proof == BoundProof::Certificate;
    if (certified != (judged.certificate != nullptr))
      findings.add("A26", place + (certified ? " has a bound without its certificate"
                                             : " has a certificate that no bound refers to"));
    else if (certified)
      text(*judged.certificate, "certificate");
  }

  void explained(const ExplanationT &explanation) {
    if (!isCost(explanation.recompute_seconds) || !isCost(explanation.transfer_seconds))
      findings.add("A26", where + " explains " + inQuotes(explanation.storage) + " with impossible seconds");
    for (const std::string *name :
         {&explanation.storage, &explanation.source, &explanation.last_reader_label, &explanation.reason})
      if (!isUtf8(*name))
        findings.add("A26", where + " explains " + inQuotes(explanation.storage) + " in text that is not UTF-8");
  }

  void curve() {
    if (proof.curve.size() > kMaxCurvePoints)
      return findings.add("A27", where + " has a curve of " + std::to_string(proof.curve.size()) + " points, at most " +
                                     std::to_string(kMaxCurvePoints));
    for (size_t i = 0; i < proof.curve.size() && !findings.enough(); ++i) {
      const CurvePointT &point = *proof.curve[i];
      std::string place = where + " curve point " + std::to_string(i);
      bound(*point.bound, place);
      if (!isTime(point.extra_seconds))
        findings.add("A27", place + " has impossible extra seconds");
      if (point.arena_bytes > point.budget_bytes)
        findings.add("A27", place + " takes " + groupedDigits(point.arena_bytes) + " bytes of a budget of " +
                                groupedDigits(point.budget_bytes));
      if (i > 0)
        monotone(*proof.curve[i - 1], point, place);
    }
  }

  void monotone(const CurvePointT &larger, const CurvePointT &smaller, const std::string &place) {
    if (smaller.budget_bytes >= larger.budget_bytes)
      findings.add("A27", place + " has a budget of " + groupedDigits(smaller.budget_bytes) + " bytes after one of " +
                              groupedDigits(larger.budget_bytes));
    if (smaller.arena_bytes > larger.arena_bytes || smaller.extra_seconds < larger.extra_seconds)
      findings.add("A27", place + " is faster or larger than the point of a larger budget before it");
  }

  const EntryT &entry;
  const PlanProofT &proof;
  Findings &findings;
  std::string where;
};

} // namespace

void verifyProof(const PlanScope &scope, const EntryT &entry, Findings &findings) {
  if (entry.proof)
    ProofVerifier(entry, findings).run();
}

} // namespace plimsoll::artifact
