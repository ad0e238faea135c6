// minimalloc's CSV of packing problems: id, lower, upper, size (and offset), a line an item.
#include "plimsoll/Planner/ProblemText.h"

#include <array>
#include <charconv>

namespace plimsoll::planner {

namespace {

enum Column { Id, Lower, Upper, Size, Offset, columnCount };
constexpr std::string_view columnNames[columnCount] = {"id", "lower", "upper", "size", "offset"};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
    text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
    text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> cells(std::string_view line) {
  std::vector<std::string_view> found;
  for (size_t at = 0;;) {
    size_t comma = line.find(',', at);
    found.push_back(trimmed(line.substr(at, comma - at)));
    if (comma == std::string_view::npos)
      return found;
    at = comma + 1;
  }
}

template <typename T> bool parseInteger(std::string_view text, T &value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

/// Reads line by line; knows which column is where.
class CsvReader {
public:
  Result<PackingProblem> read(std::string_view text) {
    for (size_t at = 0; at < text.size();) {
      size_t newline = std::min(text.find('\n', at), text.size());
      std::string_view line = trimmed(text.substr(at, newline - at));
      at = newline + 1;
      ++lineNumber;
      if (line.empty())
        continue;
      if (Status status = readLine(cells(line)); !status)
        return status;
    }
    if (!started)
      return badInput("the packing problem is empty, expected lines 'id,lower,upper,size'");
    return std::move(problem);
  }

private:
  Status fail(const std::string &text) const { return badInput("line " + std::to_string(lineNumber) + ": " + text); }

  Status readLine(const std::vector<std::string_view> &row) {
    if (!started) {
      started = true;
      for (std::string_view cell : row)
        if (cell == columnNames[Lower] || cell == columnNames[Upper])
          return readHeader(row);
      position = {0, 1, 2, 3, row.size() == 5 ? 4 : missing};
      width = row.size() == 5 ? 5 : 4;
    }
    return readItem(row);
  }

  Status readHeader(const std::vector<std::string_view> &row) {
    position.fill(missing);
    width = row.size();
    for (size_t i = 0; i < row.size(); ++i) {
      size_t column = 0;
      while (column < columnCount && columnNames[column] != row[i])
        ++column;
      if (column == columnCount)
        return fail("unknown column '" + std::string(row[i]) + "', expected id, lower, upper, size or offset");
      if (position[column] != missing)
        return fail("column '" + std::string(row[i]) + "' appears twice");
      position[column] = i;
    }
    for (Column column : {Id, Lower, Upper, Size})
      if (position[column] == missing)
        return fail("column '" + std::string(columnNames[column]) + "' is missing, expected id, lower, upper and size");
    return Status::ok();
  }

  Status readItem(const std::vector<std::string_view> &row) {
    if (row.size() != width)
      return fail(std::to_string(row.size()) + " values, expected " + std::to_string(width));
    PackingItem item;
    item.id = row[position[Id]];
    if (Status status = readNumber(row, Lower, item.lower); !status)
      return status;
    if (Status status = readNumber(row, Upper, item.upper); !status)
      return status;
    if (Status status = readNumber(row, Size, item.bytes); !status)
      return status;
    problem.items.push_back(std::move(item));
    return Status::ok();
  }

  template <typename T> Status readNumber(const std::vector<std::string_view> &row, Column column, T &value) const {
    std::string_view cell = row[position[column]];
    if (parseInteger(cell, value))
      return Status::ok();
    return fail(std::string(columnNames[column]) + " '" + std::string(cell) +
                (column == Size ? "' is not a number of bytes" : "' is not an integer"));
  }

  static constexpr size_t missing = SIZE_MAX;
  PackingProblem problem;
  std::array<size_t, columnCount> position{};
  size_t width = 0;
  size_t lineNumber = 0;
  bool started = false;
};

} // namespace

Result<PackingProblem> parsePackingCsv(std::string_view text) { return CsvReader().read(text); }

std::string writePackingCsv(const PackingProblem &problem, const PackingSolution *solution) {
  std::string text = solution ? "id,lower,upper,size,offset\n" : "id,lower,upper,size\n";
  for (size_t i = 0; i < problem.items.size(); ++i) {
    const PackingItem &item = problem.items[i];
    text += item.id + "," + std::to_string(item.lower) + "," + std::to_string(item.upper) + "," +
            std::to_string(item.bytes);
    if (solution)
      text += "," + std::to_string(solution->offsets[i]);
    text += "\n";
  }
  return text;
}

} // namespace plimsoll::planner
