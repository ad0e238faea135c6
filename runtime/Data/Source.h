// A Source yields samples for one input port, by index, converted to the port's element type.
#pragma once

#include "plimsoll/Support/Status.h"
#include "runtime/Artifact/Artifact_generated.h"
#include "runtime/Data/DataFile.h"
#include "runtime/Data/DataSpec.h"
#include "runtime/Data/ElementConvert.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace plimsoll::runtime {

/// An input port as the data side sees it. shape[0] is the batch.
struct PortInfo {
  std::string name;
  artifact::DType dtype = artifact::DType::F32;
  std::vector<int64_t> shape;
  uint64_t elements() const; ///< product of all dimensions
};

/// What one call of Source::read() delivers.
enum class SourceUnit : uint8_t {
  Sample,   ///< one row of the batch: elements() / shape[0] elements
  Batch,    ///< the whole port at once; sample indices are batch indices and are never shuffled
  Constant, ///< the whole port, the same every time
};

/// Samples of one port. Implementations keep the file mapped and allocate nothing in read() unless it fails.
class Source {
public:
  virtual ~Source() = default;
  virtual SourceUnit unit() const = 0;
  /// Number of samples (Sample), batches (Batch), or 0 (Constant).
  virtual uint64_t count() const = 0;
  /// Writes unit `index` to `out`. Fails with BadInput naming file, sample and element.
  virtual Status read(uint64_t index, std::byte *out) = 0;
  /// Limits what one mapped file keeps resident to about `bytes` (at least two pages).
  virtual void useWindow(uint64_t bytes) = 0;
  /// Bytes of mapped files that may be resident; 0 when nothing is mapped.
  virtual uint64_t residentBytes() const = 0;
  /// BadInput when the file shrank since it was opened.
  virtual Status checkUnchanged() const = 0;
  /// The mapped file and the first element past the samples' common range: tokens sources over one file agree on the
  /// smaller count. Null for sources whose count must match exactly.
  virtual const DataFile *sharedFile() const { return nullptr; }
};

/// Opens what `spec` names for `port`: checks the file, its element type and sizes against the port.
Result<std::unique_ptr<Source>> openSource(const DataSpec &spec, const PortInfo &port);

// The kinds, each in its own file. `what` in messages is "--data PORT=KIND(PATH)".
Result<std::unique_ptr<Source>> openTokenSource(const DataSpec &spec, const PortInfo &port);
Result<std::unique_ptr<Source>> openNpySource(const DataSpec &spec, const PortInfo &port);
Result<std::unique_ptr<Source>> openIdxSource(const DataSpec &spec, const PortInfo &port);
Result<std::unique_ptr<Source>> openSafeTensorsSource(const DataSpec &spec, const PortInfo &port);
Result<std::unique_ptr<Source>> openConstantSource(const DataSpec &spec, const PortInfo &port);

/// "images (--data x=npy(images.npy))", for messages.
std::string describe(const DataSpec &spec);

/// "[4, 32]".
std::string dimsText(const std::vector<int64_t> &shape);

/// A dense array inside a mapped file: shape[0] is the sample dimension.
struct ArrayView {
  size_t byteOffset = 0;
  Element element = Element::F32;
  bool bigEndian = false;
  std::vector<int64_t> shape;
};

/// A source over a dense array, checked against the port (elements per sample must agree) and ready to read.
Result<std::unique_ptr<Source>> makeArraySource(const DataSpec &spec, const PortInfo &port, DataFile file,
                                                const ArrayView &view);

/// Product of `shape` times `elementSize`, or nullopt when a dimension is negative or the product overflows int64.
std::optional<uint64_t> denseBytes(const std::vector<int64_t> &shape, size_t elementSize);

/// Converts `count` elements that lie at `offset` of `file` to `target` elements at `out`, in pieces that fit the
/// file's window. Fails with BadInput: "WHAT: PLACE, element I: REASON; correct the data file", where `unit` names the
/// place.
Status convertFromFile(DataFile &file, uint64_t offset, const ElementFormat &format, uint64_t count,
                       artifact::DType target, std::byte *out, const std::string &what, const char *unit,
                       uint64_t unitIndex);

} // namespace plimsoll::runtime
