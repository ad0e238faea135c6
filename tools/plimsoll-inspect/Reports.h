// The reports of plimsoll-inspect, as text or JSON. docs/Runner.md documents the JSON schema. Names that come from the
// artifact are printed with control characters escaped.
#pragma once

#include "tools/plimsoll-inspect/Analysis.h"

#include <string>
#include <vector>

namespace plimsoll::inspect {

struct ReportOptions {
  std::string path;                              ///< for the title
  size_t plan = 0;                               ///< index of the sealed plan
  std::vector<const artifact::EntryT *> entries; ///< the ones to report
  size_t top = 12;                               ///< largest live buffers to list
};

/// Target, provenance, promised memory, variables by kind, and per entry: commands, peak, breakdown, largest buffers.
std::string textSummary(const artifact::ArtifactT &artifact, const ReportOptions &options);

/// The same and the ports, as JSON (schema version 1), ending in a line end. All live buffers of the peak, not only the
/// largest.
std::string jsonSummary(const artifact::ArtifactT &artifact, const ReportOptions &options);

/// One line per command: number, stream, what it does, label, operands.
std::string commandListing(const artifact::ArtifactT &artifact, const ReportOptions &options);

struct MapSize {
  size_t rows = 32;    ///< lines, each a range of addresses
  size_t columns = 96; ///< characters, each a range of commands
};

/// Every device arena as a map: addresses downwards, commands to the right, a letter per class of what lies there.
std::string arenaMap(const artifact::SealedPlanT &plan, const artifact::EntryT &entry, const MapSize &size);

/// Letter of a class in the arena map.
char classLetter(artifact::BufferClass klass);

} // namespace plimsoll::inspect
