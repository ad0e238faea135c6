// The ports of one entry, resolved once: data inputs, scalar inputs ("lr") and scalar outputs ("loss", "tokens").
#pragma once

#include "plimsoll/Runtime/Session.h"
#include "runtime/Data/Source.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::runtime {

class EntryPorts {
public:
  /// Resolves all ports of `entry`. Fails with BadInput when the artifact has no such entry (naming those it has).
  static Result<EntryPorts> bind(Session &session, std::string_view entry);

  const std::string &name() const { return entryName; }
  /// Inputs that --data feeds: all but "lr".
  const std::vector<PortInfo> &dataPorts() const { return ports; }
  std::span<const std::span<std::byte>> dataTargets() const { return targets; }

  /// Writes the scalar input `port`; false when the entry has none.
  bool setScalar(std::string_view port, double value) const;
  /// Reads a one-element output, or nothing when the entry has no such output.
  std::optional<double> scalar(std::string_view port) const;

private:
  struct Scalar {
    std::string name;
    artifact::DType dtype;
    std::span<std::byte> writable;       ///< inputs
    std::span<const std::byte> readable; ///< outputs
  };
  Status bindInputs(Session &session, const artifact::EntryT &entry);
  Status bindOutputs(Session &session, const artifact::EntryT &entry);

  std::string entryName;
  std::vector<PortInfo> ports;
  std::vector<std::span<std::byte>> targets;
  std::vector<Scalar> scalarInputs;
  std::vector<Scalar> scalarOutputs;
};

/// "train_step, eval_step": the entries of plan 0, for messages.
std::string entryList(const Session &session);

/// Name, type and shape of an artifact port.
PortInfo portInfo(const artifact::PortT &port);

} // namespace plimsoll::runtime
