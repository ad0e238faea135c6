// Times fused kernels on two threads: GB/s of operands and results. Run by hand (CodegenBench); docs quote its numbers
// beside torch's from bench_torch.py.
#include "KernelHarness.h"

#include "lib/Passes/Passes.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <thread>

using namespace mlir;
using namespace plimsoll;
using namespace plimsoll::codegen;
using namespace plimsoll::codegen::test;

namespace {

struct Case {
  const char *name, *text;
};

const Case cases[] = {
    {"bias+gelu 2048x3072", R"(func.func @f(%x: tensor<2048x3072xf32>, %b: tensor<3072xf32>) -> tensor<2048x3072xf32> {
      %bb = graph.broadcast %b [1] : tensor<3072xf32> -> tensor<2048x3072xf32>
      %s = graph.add %x, %bb : tensor<2048x3072xf32>
      %y = graph.gelu %s {approximate = true} : tensor<2048x3072xf32>
      return %y : tensor<2048x3072xf32>
    })"},
    {"layer norm + affine 8192x768",
     R"(func.func @f(%x: tensor<8192x768xf32>, %g: tensor<768xf32>, %b: tensor<768xf32>) -> (tensor<8192x768xf32>, tensor<8192xf32>, tensor<8192xf32>) {
      %n, %m, %s = graph.layer_norm %x axis 1 eps 1.0e-5 : (tensor<8192x768xf32>) -> (tensor<8192x768xf32>, tensor<8192xf32>, tensor<8192xf32>)
      %gb = graph.broadcast %g [1] : tensor<768xf32> -> tensor<8192x768xf32>
      %bb = graph.broadcast %b [1] : tensor<768xf32> -> tensor<8192x768xf32>
      %p = graph.mul %n, %gb : tensor<8192x768xf32>
      %y = graph.add %p, %bb : tensor<8192x768xf32>
      return %y, %m, %s : tensor<8192x768xf32>, tensor<8192xf32>, tensor<8192xf32>
    })"},
    {"layer norm backward 8192x768",
     R"(func.func @f(%dz: tensor<8192x768xf32>, %h: tensor<8192x768xf32>, %m: tensor<8192xf32>, %s: tensor<8192xf32>, %g: tensor<768xf32>) -> (tensor<8192x768xf32>, tensor<768xf32>, tensor<768xf32>) {
      %gb = graph.broadcast %g [1] : tensor<768xf32> -> tensor<8192x768xf32>
      %mb = graph.broadcast %m [0] : tensor<8192xf32> -> tensor<8192x768xf32>
      %sb = graph.broadcast %s [0] : tensor<8192xf32> -> tensor<8192x768xf32>
      %xc = graph.sub %h, %mb : tensor<8192x768xf32>
      %xh = graph.mul %xc, %sb : tensor<8192x768xf32>
      %dgf = graph.mul %dz, %xh : tensor<8192x768xf32>
      %dg = graph.reduce_sum %dgf [0] : tensor<8192x768xf32> -> tensor<768xf32>
      %db = graph.reduce_sum %dz [0] : tensor<8192x768xf32> -> tensor<768xf32>
      %dn = graph.mul %dz, %gb : tensor<8192x768xf32>
      %t = graph.mul %dn, %xh : tensor<8192x768xf32>
      %t1 = graph.reduce_sum %t [1] : tensor<8192x768xf32> -> tensor<8192xf32>
      %t2 = graph.reduce_sum %dn [1] : tensor<8192x768xf32> -> tensor<8192xf32>
      %k = graph.constant dense<0.0013020833> : tensor<8192xf32>
      %t1m = graph.mul %t1, %k : tensor<8192xf32>
      %t2m = graph.mul %t2, %k : tensor<8192xf32>
      %t1b = graph.broadcast %t1m [0] : tensor<8192xf32> -> tensor<8192x768xf32>
      %t2b = graph.broadcast %t2m [0] : tensor<8192xf32> -> tensor<8192x768xf32>
      %q = graph.mul %xh, %t1b : tensor<8192x768xf32>
      %u = graph.sub %dn, %t2b : tensor<8192x768xf32>
      %v = graph.sub %u, %q : tensor<8192x768xf32>
      %dx = graph.mul %v, %sb : tensor<8192x768xf32>
      return %dx, %dg, %db : tensor<8192x768xf32>, tensor<768xf32>, tensor<768xf32>
    })"},
    {"softmax 12288x512", R"(func.func @f(%x: tensor<12288x512xf32>) -> tensor<12288x512xf32> {
      %y = graph.softmax %x axis 1 : tensor<12288x512xf32>
      return %y : tensor<12288x512xf32>
    })"},
    {"cross-entropy + gradient 256x50257",
     R"(func.func @f(%x: tensor<256x50257xf32>, %l: tensor<256xi64>, %c: tensor<256xf32>) -> (tensor<256xf32>, tensor<256x50257xf32>) {
      %loss, %lse = graph.cross_entropy %x, %l ignore -100 : (tensor<256x50257xf32>, tensor<256xi64>) -> (tensor<256xf32>, tensor<256xf32>)
      %g = graph.cross_entropy_grad %x, %l, %lse, %c ignore -100 : (tensor<256x50257xf32>, tensor<256xi64>, tensor<256xf32>, tensor<256xf32>) -> tensor<256x50257xf32>
      return %loss, %g : tensor<256xf32>, tensor<256x50257xf32>
    })"},
    {"adamw update 8M",
     R"(func.func @f(%p: tensor<8388608xf32>, %g: tensor<8388608xf32>, %m: tensor<8388608xf32>, %v: tensor<8388608xf32>, %lr: tensor<f32>) -> (tensor<8388608xf32>, tensor<8388608xf32>, tensor<8388608xf32>) {
      %b1 = graph.constant dense<0.9> : tensor<8388608xf32>
      %c1 = graph.constant dense<0.1> : tensor<8388608xf32>
      %b2 = graph.constant dense<0.999> : tensor<8388608xf32>
      %c2 = graph.constant dense<0.001> : tensor<8388608xf32>
      %eps = graph.constant dense<1.0e-8> : tensor<8388608xf32>
      %wd = graph.constant dense<0.9999> : tensor<8388608xf32>
      %m0 = graph.mul %m, %b1 : tensor<8388608xf32>
      %m1 = graph.mul %g, %c1 : tensor<8388608xf32>
      %mn = graph.add %m0, %m1 : tensor<8388608xf32>
      %g2 = graph.mul %g, %g : tensor<8388608xf32>
      %v0 = graph.mul %v, %b2 : tensor<8388608xf32>
      %v1 = graph.mul %g2, %c2 : tensor<8388608xf32>
      %vn = graph.add %v0, %v1 : tensor<8388608xf32>
      %root = graph.sqrt %vn : tensor<8388608xf32>
      %den = graph.add %root, %eps : tensor<8388608xf32>
      %dir = graph.div %mn, %den : tensor<8388608xf32>
      %lrb = graph.broadcast %lr [] : tensor<f32> -> tensor<8388608xf32>
      %step = graph.mul %dir, %lrb : tensor<8388608xf32>
      %pw = graph.mul %p, %wd : tensor<8388608xf32>
      %pn = graph.sub %pw, %step : tensor<8388608xf32>
      return %pn, %mn, %vn : tensor<8388608xf32>, tensor<8388608xf32>, tensor<8388608xf32>
    })"},
};

struct Launch {
  KernelInfo info;
  KernelFunction kernel = nullptr;
  std::vector<void *> operands;
};

/// Best of ten runs of all launches, each split over two threads.
double bestSeconds(std::vector<Launch> &launches) {
  constexpr int runs = 12;
  std::barrier gate(2);
  auto half = [&](int thread) {
    for (int run = 0; run < runs; ++run)
      for (Launch &launch : launches) {
        gate.arrive_and_wait();
        int64_t middle = launch.info.extent / 2;
        launch.kernel(launch.operands.data(), thread ? middle : 0, thread ? launch.info.extent : middle);
      }
  };
  double best = 1e9;
  std::thread helper(half, 1);
  for (int run = 0; run < runs; ++run) {
    auto start = std::chrono::steady_clock::now();
    for (Launch &launch : launches) {
      gate.arrive_and_wait();
      launch.kernel(launch.operands.data(), 0, launch.info.extent / 2);
    }
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  helper.join();
  return best;
}

void measure(const Case &bench) {
  MLIRContext context;
  context.loadDialect<graph::GraphDialect, func::FuncDialect>();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(bench.text, &context);
  PassManager passes(&context);
  passes.addNestedPass<func::FuncOp>(createPlimsollFuse());
  if (!module || failed(passes.run(*module)))
    return;
  func::FuncOp function = *module->getOps<func::FuncOp>().begin();
  std::map<void *, OperandBuffer> buffers;
  double bytes = 0;
  auto bufferOf = [&](Value value, uint64_t seed) -> void * {
    auto found = buffers.find(value.getAsOpaquePointer());
    if (found == buffers.end()) {
      found = buffers
                  .emplace(value.getAsOpaquePointer(),
                           OperandBuffer(graph::tensorType(value), layoutOf(graph::tensorType(value), Storage::Dense)))
                  .first;
      found->second.set(randomTensor(graph::tensorType(value), seed));
    }
    return found->second.data();
  };
  for (Value argument : function.getArguments())
    bytes += static_cast<double>(graph::tensorBytes(argument.getType()));
  for (Type result : function.getResultTypes())
    bytes += static_cast<double>(graph::tensorBytes(result));
  CpuKernelModule kernels(&context);
  std::vector<Launch> launches;
  for (graph::GroupOp group : function.getOps<graph::GroupOp>()) {
    Launch launch;
    SmallVector<OperandLayout> inputs, outputs;
    for (Value value : group.getInputs()) {
      inputs.push_back(layoutOf(graph::tensorType(value), Storage::Dense));
      launch.operands.push_back(bufferOf(value, launch.operands.size()));
    }
    for (Value value : group.getOutputs()) {
      outputs.push_back(layoutOf(graph::tensorType(value), Storage::Dense));
      launch.operands.push_back(bufferOf(value, 1));
    }
    launch.info = *kernels.add(group, inputs, outputs);
    launches.push_back(launch);
  }
  auto start = std::chrono::steady_clock::now();
  LoadedModule loaded(*kernels.finish());
  double compile = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (Launch &launch : launches)
    launch.kernel = loaded.find(launch.info.symbol);
  double seconds = bestSeconds(launches);
  std::printf("%-36s %zu kernels, compiled in %4.0f ms: %7.3f ms, %6.1f GB/s\n", bench.name, launches.size(),
              compile * 1e3, seconds * 1e3, bytes / seconds * 1e-9);
}

} // namespace

int main() {
  for (const Case &bench : cases)
    measure(bench);
}
