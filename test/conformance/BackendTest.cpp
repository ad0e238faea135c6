// The CPU backend's own duties: arenas, kernel modules, launches, copies, faults.
#include "runtime/CPU/CpuBackend.h"
#include "test/conformance/Harness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <numeric>

namespace plimsoll::runtime::conformance {

using testing::HasSubstr;

TEST(Backend, ArenaIsAlignedAndZero) {
  const auto backend = createCpuBackend({2, false});
  for (uint64_t bytes : {uint64_t{1}, uint64_t{1000}, uint64_t{5} << 20}) {
    auto arena = backend->allocateArena(artifact::Tier::Device, bytes, 4096);
    ASSERT_TRUE(arena) << arena.status().message();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(*arena) % 4096, 0u);
    const auto *begin = static_cast<const uint8_t *>(*arena);
    EXPECT_TRUE(std::all_of(begin, begin + bytes, [](uint8_t byte) { return byte == 0; }));
    backend->freeArena(*arena);
  }
}

TEST(Backend, ArenaThatCannotBeHadIsAnError) {
  const auto backend = createCpuBackend({1, false});
  auto huge = backend->allocateArena(artifact::Tier::Device, uint64_t{1} << 60, 64);
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.status().code(), ExitCode::DoesNotFit);
  EXPECT_THAT(huge.status().message(),
              HasSubstr("found an arena of 1,152,921,504,606,846,976 bytes, but this machine has "));
  EXPECT_FALSE(backend->allocateArena(artifact::Tier::Device, ~uint64_t{0}, 64));
  auto crooked = backend->allocateArena(artifact::Tier::Device, 64, 48);
  ASSERT_FALSE(crooked);
  EXPECT_THAT(crooked.status().message(), HasSubstr("cannot allocate an arena of 64 bytes aligned to 48"));
  auto disk = backend->allocateArena(artifact::Tier::Disk, 64, 64);
  ASSERT_FALSE(disk);
  EXPECT_THAT(disk.status().message(), HasSubstr("the cpu backend has no disk tier"));
}

/// A shared object with one kernel that adds `amount` to every element, made by the compiler of this build.
static std::vector<uint8_t> buildModule(int amount, const std::string &more = "") {
  const std::string base = testing::TempDir() + "plimsoll-module-" + std::to_string(amount);
  std::ofstream(base + ".c") << "void add(void *const *o, long b, long e) { for (; b < e; ++b) ((int *)o[0])[b] += "
                             << amount << "; }\n"
                             << more;
  if (std::system(("cc -shared -fPIC -O1 -o " + base + ".so " + base + ".c").c_str()) != 0)
    return {};
  std::ifstream file(base + ".so", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Backend, LoadsModulesSideBySide) {
  const auto backend = createCpuBackend({2, false});
  std::vector<KernelFunction> kernels;
  for (int amount : {1, 100}) {
    const std::vector<uint8_t> image = buildModule(amount);
    ASSERT_FALSE(image.empty());
    const std::vector<std::string> symbols = {"add"};
    auto loaded = backend->loadModule(image, symbols);
    ASSERT_TRUE(loaded) << loaded.status().message();
    kernels.push_back((*loaded)[0]);
  }
  std::vector<int> values(10, 0);
  void *operands[] = {values.data()};
  for (KernelFunction kernel : kernels)
    backend->launch(kernel, operands, 10, 3, 0);
  EXPECT_EQ(values, std::vector<int>(10, 101));
}

TEST(Backend, ModuleErrorsNameTheCause) {
  const auto backend = createCpuBackend({1, false});
  const std::vector<std::string> missing = {"add", "subtract"};
  std::vector<uint8_t> image = buildModule(1);
  ASSERT_FALSE(image.empty());
  auto found = backend->loadModule(image, missing);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.status().code(), ExitCode::BadInput);
  EXPECT_THAT(found.status().message(), HasSubstr("found no kernel 'subtract' in the kernel module"));
  found = backend->loadModule(std::vector<uint8_t>(100, 7), missing);
  ASSERT_FALSE(found);
  EXPECT_THAT(found.status().message(), HasSubstr("100 bytes that is no ELF image"));
  const std::vector<uint8_t> whole = image;
  image.resize(image.size() / 8);
  found = backend->loadModule(image, missing);
  ASSERT_FALSE(found);
  EXPECT_THAT(found.status().message(), HasSubstr("that ends before its segments do, expected an ELF shared object"));
  image.resize(70);
  EXPECT_THAT(backend->loadModule(image, missing).status().message(), HasSubstr("has no readable program headers"));
  image = whole;
  image[18] = 3; // e_machine: another processor
  EXPECT_THAT(backend->loadModule(image, missing).status().message(), HasSubstr("is for another machine"));
}

TEST(Backend, ModuleThatNeedsAnUnknownLibraryNamesIt) {
  const std::vector<uint8_t> image =
      buildModule(2, "extern void nowhere(void); void *needed(void) { return nowhere; }");
  ASSERT_FALSE(image.empty());
  const auto backend = createCpuBackend({1, false});
  auto found = backend->loadModule(image, std::vector<std::string>{"add"});
  ASSERT_FALSE(found);
  EXPECT_THAT(found.status().message(), HasSubstr("cannot load the kernel module: "));
  EXPECT_THAT(found.status().message(), HasSubstr("undefined symbol: nowhere"));
}

/// Counts visits per iteration and notes chunk starts that are no multiple of the grain in operand 2.
static void visit(void *const *operands, int64_t begin, int64_t end) {
  const int64_t grain = *static_cast<const int64_t *>(operands[1]);
  if (begin % grain != 0)
    *static_cast<int64_t *>(operands[2]) = begin;
  for (; begin < end; ++begin)
    ++static_cast<int *>(operands[0])[begin];
}

TEST(Backend, LaunchCoversTheRangeOnceInGrains) {
  for (unsigned threads : {1u, 2u, 3u, 5u})
    for (int64_t extent : {1, 2, 15, 16, 17, 1000, 4099})
      for (int64_t grain : {1, 4, 16, 5000}) {
        const auto backend = createCpuBackend({threads, false});
        std::vector<int> visits(static_cast<size_t>(extent), 0);
        int64_t step = grain, wrong = -1;
        void *operands[] = {visits.data(), &step, &wrong};
        backend->launch(visit, operands, extent, grain, 0);
        EXPECT_EQ(visits, std::vector<int>(static_cast<size_t>(extent), 1)) << extent << " by " << grain;
        EXPECT_EQ(wrong, -1);
      }
}

TEST(Backend, CopyMovesEveryByte) {
  const auto backend = createCpuBackend({3, false});
  for (size_t bytes : {1, 65536, 1000003}) {
    std::vector<uint8_t> source(bytes), target(bytes, 0);
    std::iota(source.begin(), source.end(), 1);
    backend->copy(target.data(), source.data(), bytes, 0);
    EXPECT_EQ(source, target);
  }
}

/// Runs one indexed call whose indices hold 300 at element 2 and 400 at element 5, data extent 256.
static void expectFault(const CallSpec &spec, size_t indicesAt, bool reference, const std::string &message) {
  SCOPED_TRACE(spec.op);
  const auto backend = createCpuBackend({2, reference});
  Case test{"Fault", spec, Bound::Exact, 1, true, {}};
  test.fill[indicesAt] = [](int64_t at) { return at == 2 ? 300 : at == 5 ? 400 : at; };
  Operands operands = makeOperands(test);
  auto call = backend->prepare(spec);
  ASSERT_TRUE(call) << call.status().message();
  execute(**call, operands);
  const Status fault = backend->synchronize();
  EXPECT_EQ(fault.code(), ExitCode::BadInput);
  EXPECT_EQ(fault.message(), message);
  EXPECT_TRUE(backend->synchronize()) << "a fault is reported once";
  if (spec.op == "gather" || spec.op == "gather_elements") {
    EXPECT_EQ(operands.buffers[2].get(2), 0.0);
  }
}

TEST(Backend, IndexOutOfRangeIsReportedOnce) {
  const auto axis = std::vector<artifact::AttributeT>{ints("axis", {0})};
  const TensorSpec indices = read({6}, DType::I64);
  for (bool reference : {true, false}) {
    const std::string range = "index 300 out of range [-256, 256) in ";
    expectFault({"gather", {read({256}), indices, written({6})}, axis}, 1, reference, range + "gather");
    expectFault({"gather_elements", {read({256}), indices, written({6})}, axis}, 1, reference,
                range + "gather_elements");
    expectFault({"scatter_add", {indices, read({6}), written({256})}, axis}, 0, reference, range + "scatter_add");
    expectFault({"scatter_add_elements", {indices, read({6}), written({256})}, axis}, 0, reference,
                range + "scatter_add_elements");
    expectFault({"max_pool_grad", {read({1, 1, 6}), read({1, 1, 6}, DType::I32), written({1, 1, 256})}, {}}, 1,
                reference, range + "max_pool_grad");
  }
}

TEST(Backend, NameAndEvents) {
  const auto backend = createCpuBackend({});
  EXPECT_EQ(backend->name(), "cpu");
  backend->recordEvent(0, 0);
  backend->waitEvent(0, 0);
  EXPECT_TRUE(backend->synchronize());
}

} // namespace plimsoll::runtime::conformance
