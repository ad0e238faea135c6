// The arena as a picture of letters. A cell shows the class that covers most bytes of its address range in its command
// range; the order of classes breaks ties.
#include "plimsoll/Support/Units.h"
#include "tools/plimsoll-inspect/Reports.h"

#include <algorithm>
#include <fmt/format.h>

namespace plimsoll::inspect {

using namespace artifact;

namespace {

/// Bytes by class for every cell of one arena.
class Grid {
public:
  Grid(uint64_t arenaBytes, size_t commandCount, const MapSize &mapSize)
      : bytes(arenaBytes), commands(commandCount), size(mapSize), cells(size.rows * size.columns) {}

  void add(const LiveBuffer &buffer) {
    for (size_t column = 0; column < size.columns; ++column) {
      size_t first = commands * column / size.columns, last = commands * (column + 1) / size.columns;
      last = std::max(last, first + 1);
      if (buffer.lastCommand < first || buffer.firstCommand >= last)
        continue;
      addColumn(buffer, column);
    }
  }

  char letter(size_t row, size_t column) const {
    const auto &cell = cells[row * size.columns + column];
    size_t best = static_cast<size_t>(std::max_element(cell.begin(), cell.end()) - cell.begin());
    return cell[best] ? classLetter(static_cast<BufferClass>(best)) : '.';
  }

  /// First address of a row.
  uint64_t rowBegin(size_t row) const {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(bytes) * row / size.rows);
  }

private:
  void addColumn(const LiveBuffer &buffer, size_t column) {
    for (size_t row = 0; row < size.rows; ++row) {
      uint64_t begin = std::max(rowBegin(row), buffer.offset);
      uint64_t end = std::min(rowBegin(row + 1), buffer.offset + buffer.bytes);
      if (begin < end)
        cells[row * size.columns + column][static_cast<size_t>(buffer.klass)] += end - begin;
    }
  }

  uint64_t bytes;
  size_t commands;
  MapSize size;
  std::vector<std::array<uint64_t, classCount>> cells;
};

} // namespace

char classLetter(BufferClass klass) { return "PGOMSAWIUC"[static_cast<size_t>(klass)]; }

std::string arenaMap(const SealedPlanT &plan, const EntryT &entry, const MapSize &wanted) {
  std::string text;
  size_t commands = std::max<size_t>(entry.commands.size(), 1);
  MapSize size{std::max<size_t>(wanted.rows, 1), std::clamp<size_t>(wanted.columns, 1, commands)};
  for (uint32_t arena = 0; arena < plan.arenas.size(); ++arena) {
    if (plan.arenas[arena]->tier != Tier::Device)
      continue;
    Grid grid(plan.arenas[arena]->bytes, commands, size);
    for (const LiveBuffer &buffer : allBuffers(plan, entry))
      if (buffer.arena == arena)
        grid.add(buffer);
    text += fmt::format("entry {}, arena {}: {} bytes downwards, commands 0..{} to the right\n", entry.name, arena,
                        groupedDigits(plan.arenas[arena]->bytes), commands - 1);
    for (size_t row = 0; row < size.rows; ++row) {
      text += fmt::format("{:>17} ", groupedDigits(grid.rowBegin(row)));
      for (size_t column = 0; column < size.columns; ++column)
        text += grid.letter(row, column);
      text += "\n";
    }
  }
  text += "P parameter  G gradient  O optimizer state  M model state  S step state  A activation\n"
          "W workspace  I input  U output  C constant  . free\n";
  return text;
}

} // namespace plimsoll::inspect
