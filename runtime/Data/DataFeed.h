// A DataFeed fills the data ports of one entry, batch after batch. Its order is a pure function of (seed, cursor):
// epoch e visits the samples in the order of EpochPermutation(n, seed, e), and a batch that reaches the end of an epoch
// goes on in the next one, so every batch is full and the number of steps never depends on the remainder n mod batch.
#pragma once

#include "runtime/Data/DataSpec.h"
#include "runtime/Data/Shuffle.h"
#include "runtime/Data/Source.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace plimsoll::runtime {

/// Where the next batch begins. Part of every checkpoint.
struct DataCursor {
  uint64_t epoch = 0;
  uint64_t position = 0; ///< samples (or whole batches, for batch files) already consumed of this epoch
  bool operator==(const DataCursor &) const = default;
};

struct DataFeedOptions {
  uint64_t seed = 0;
  bool shuffle = true;
  /// Bytes of mapped files that may be resident, shared evenly by the sources that map one; each takes at least two
  /// pages.
  uint64_t residentLimit = 0;
};

class DataFeed {
public:
  /// Opens one source per port. Fails with Usage (a port without a source, a source without a port: all listed at
  /// once) or BadInput (files; sources that disagree on the number of samples).
  static Result<DataFeed> open(const std::vector<DataSpec> &specs, const std::vector<PortInfo> &ports,
                               const DataFeedOptions &options);

  /// Writes the next batch, one target per port in the order given to open(), and moves the cursor. Allocates only when
  /// it fails; the cursor does not move then.
  Status next(std::span<const std::span<std::byte>> targets);

  /// Samples of an epoch (batches for batch files); 0 when every port is constant.
  uint64_t samples() const { return sampleCount; }
  /// Samples one batch consumes: the batch dimension, or 1 for batch files.
  uint64_t samplesPerBatch() const { return batchSamples; }
  /// Whole batches of an epoch; the remainder is left out. At least 1.
  uint64_t batchesPerEpoch() const;

  const DataCursor &cursor() const { return at; }
  /// Continues at `cursor`. BadInput when it lies outside this data.
  Status seek(const DataCursor &cursor);

  /// Bytes of file data that may be resident: the windows of all sources. Exact, for the memory account.
  uint64_t stagingBytes() const;

private:
  Status readSample(uint64_t position, uint64_t row, std::span<const std::span<std::byte>> targets);
  Status agree(const std::vector<DataSpec> &specs);

  struct Feed {
    std::unique_ptr<Source> source;
    PortInfo port;
    uint64_t rowBytes = 0; ///< bytes of one sample in the port (the whole port for Batch and Constant)
  };
  std::vector<Feed> feeds;
  DataFeedOptions options;
  std::optional<EpochPermutation> order;
  DataCursor at;
  uint64_t sampleCount = 0;
  uint64_t batchSamples = 1;
};

} // namespace plimsoll::runtime
