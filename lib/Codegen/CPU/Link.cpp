// Object files to one shared object, with LLD inside this process. LLD reads and writes files, so they pass through a
// private temporary folder that is removed again.
#include "lib/Codegen/CPU/Lower.h"

#include "lld/Common/Driver.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <mutex>

LLD_HAS_DRIVER(elf)

namespace plimsoll::codegen {

/// What generated code may call: f64 functions that libm has (DESIGN: resolved when the object is loaded).
static bool isLibm(llvm::StringRef name) {
  static const llvm::StringSet<> known = {"exp", "log", "log1p", "tanh", "erf",  "sin",
                                          "cos", "pow", "floor", "exp2", "log2", "sincos"};
  return known.contains(name);
}

// Undefined symbols other than libm's would only show up when the artifact is loaded, on another machine.
static bool checkSymbols(llvm::ArrayRef<llvm::SmallString<0>> objects, std::string &error) {
  for (const llvm::SmallString<0> &object : objects) {
    auto file = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(object.str(), "kernels.o"));
    if (!file) {
      error = "LLVM wrote an unreadable object: " + llvm::toString(file.takeError());
      return false;
    }
    for (const llvm::object::SymbolRef &symbol : (*file)->symbols()) {
      auto flags = symbol.getFlags();
      auto name = symbol.getName();
      bool readable = static_cast<bool>(flags) && static_cast<bool>(name);
      if (!flags)
        llvm::consumeError(flags.takeError());
      if (!name)
        llvm::consumeError(name.takeError());
      if (!readable || !(*flags & llvm::object::SymbolRef::SF_Undefined) || name->empty() || isLibm(*name))
        continue;
      error = "generated code needs the symbol '" + name->str() +
              "', which the runtime does not offer; this is a bug in code generation";
      return false;
    }
  }
  return true;
}

namespace {
/// A temporary folder that goes away with its contents.
class ScratchFolder {
public:
  ScratchFolder() {
    failedToCreate = static_cast<bool>(llvm::sys::fs::createUniqueDirectory("plimsoll-kernels", path));
  }
  ~ScratchFolder() {
    if (!failedToCreate)
      llvm::sys::fs::remove_directories(path);
  }
  std::string file(llvm::StringRef name) const {
    llvm::SmallString<128> full(path);
    llvm::sys::path::append(full, name);
    return full.str().str();
  }
  bool ok() const { return !failedToCreate; }

private:
  llvm::SmallString<128> path;
  bool failedToCreate = false;
};
} // namespace

static bool writeFile(const std::string &path, llvm::StringRef bytes, std::string &error) {
  std::error_code code;
  llvm::raw_fd_ostream stream(path, code);
  if (!code) {
    stream << bytes;
    stream.close();
    code = stream.error();
    stream.clear_error();
  }
  if (code)
    error = "cannot write " + path + ": " + code.message() + "; free space there or set TMPDIR";
  return !code;
}

static bool runLinker(const std::vector<std::string> &arguments, std::string &error) {
  static std::mutex lock; // LLD keeps its state in globals
  std::lock_guard<std::mutex> guard(lock);
  std::vector<const char *> raw;
  for (const std::string &argument : arguments)
    raw.push_back(argument.c_str());
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  lld::Result result = lld::lldMain(raw, stream, stream, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0)
    error = "linking kernels failed: " + messages;
  return result.retCode == 0;
}

bool linkSharedObject(llvm::ArrayRef<llvm::SmallString<0>> objects, std::vector<uint8_t> &image, std::string &error) {
  if (!checkSymbols(objects, error))
    return false;
  ScratchFolder scratch;
  if (!scratch.ok()) {
    error = "cannot create a temporary folder; free space there or set TMPDIR";
    return false;
  }
  std::string output = scratch.file("kernels.so");
  std::vector<std::string> arguments = {"ld.lld",
                                        "-shared",
                                        "-soname=plimsoll-kernels.so",
                                        "--build-id=none",
                                        "--hash-style=gnu",
                                        "-z",
                                        "noexecstack",
                                        "--gc-sections",
                                        "--threads=1",
                                        "-o",
                                        output};
  for (size_t i = 0; i < objects.size(); ++i) {
    arguments.push_back(scratch.file("kernels" + std::to_string(i) + ".o"));
    if (!writeFile(arguments.back(), objects[i].str(), error))
      return false;
  }
  if (!runLinker(arguments, error))
    return false;
  auto file = llvm::MemoryBuffer::getFile(output);
  if (!file) {
    error = "cannot read " + output + ": " + file.getError().message();
    return false;
  }
  image.assign((*file)->getBufferStart(), (*file)->getBufferEnd());
  return true;
}

} // namespace plimsoll::codegen
