// Every rule of docs/Artifact.md: a mutation of the valid tiny artifact that breaks this rule and no other, with the
// message it must give.
#include "runtime/Artifact/Reader.h"
#include "runtime/Artifact/Types.h"
#include "test/unit/Runtime/TinyArtifact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <regex>
#include <set>

using namespace plimsoll;
using namespace plimsoll::artifact;
using namespace plimsoll::test;

namespace {

using Mutation = std::function<void(ArtifactT &)>;

struct RuleCase {
  const char *rule;    ///< "A8"
  const char *message; ///< part of what must be said
  Mutation mutate;
  ExitCode code = ExitCode::BadInput;
};

SealedPlanT &plan(ArtifactT &a) { return *a.plans[0]; }
EntryT &train(ArtifactT &a) { return *plan(a).entries[0]; }
EntryT &eval(ArtifactT &a) { return *plan(a).entries[1]; }
BufferT &local(ArtifactT &a, uint32_t buffer) { return *train(a).buffers[buffer - 4]; }
LaunchT &launch(ArtifactT &a, size_t command) { return *train(a).commands[command]->body.AsLaunch(); }
LibraryCallT &call(ArtifactT &a, size_t command) { return *train(a).commands[command]->body.AsLibraryCall(); }
CopyT &copy(ArtifactT &a) { return *train(a).commands[5]->body.AsCopy(); }
TensorViewT &launchView(ArtifactT &a, size_t command, size_t operand) {
  return *launch(a, command).operands[operand]->view;
}
TensorViewT &callView(ArtifactT &a, size_t command, size_t operand) {
  return *call(a, command).operands[operand]->view;
}

PlanProofT &proof(ArtifactT &a) { return *train(a).proof; }

void promise(ArtifactT &a, uint64_t arenaBytes) {
  MemoryT &memory = *plan(a).memory;
  memory.training_bytes += arenaBytes - memory.arena_bytes;
  memory.arena_bytes = arenaBytes;
}

void makeCollective(ArtifactT &a) {
  CollectiveT body;
  body.kind = "all_reduce";
  train(a).commands[0]->body.Set(std::move(body));
}

void addAttribute(ArtifactT &a, const char *key) {
  call(a, 1).attributes.push_back(std::make_unique<AttributeT>());
  call(a, 1).attributes.back()->key = key;
}

const RuleCase cases[] = {
    {"A2", "format version 2, this program reads version 1", [](ArtifactT &a) { a.format_version = 2; },
     ExitCode::VersionMismatch},

    {"A3", "no target", [](ArtifactT &a) { a.target.reset(); }},
    {"A3", "no provenance", [](ArtifactT &a) { a.provenance.reset(); }},
    {"A3", "no plan", [](ArtifactT &a) { a.plans.clear(); }},
    {"A3", "a plan is missing", [](ArtifactT &a) { a.plans[0].reset(); }},
    {"A3", "has no memory promise", [](ArtifactT &a) { plan(a).memory.reset(); }},
    {"A3", "has an empty entry", [](ArtifactT &a) { plan(a).entries[1].reset(); }},
    {"A3", "missing or of an unknown tier", [](ArtifactT &a) { plan(a).arenas[1]->tier = static_cast<Tier>(9); }},
    {"A3", "of an unknown class", [](ArtifactT &a) { local(a, H).klass = static_cast<BufferClass>(99); }},
    {"A3", "unknown kind, dtype or initial value", [](ArtifactT &a) { a.variables[0]->init = static_cast<InitKind>(9); }},
    {"A3", "a kernel module is missing", [](ArtifactT &a) { a.modules[0].reset(); }},
    {"A3", "a kernel is missing", [](ArtifactT &a) { a.kernels[0].reset(); }},
    {"A3", "command 3 has no known body", [](ArtifactT &a) { train(a).commands[3]->body.Reset(); }},
    {"A3", "command 0 operand 1 is missing", [](ArtifactT &a) { launch(a, 0).operands[1].reset(); }},
    {"A3", "command 0 operand 1 has no view", [](ArtifactT &a) { launch(a, 0).operands[1]->view.reset(); }},
    {"A3", "command 5 source has no view", [](ArtifactT &a) { copy(a).source.reset(); }},
    {"A3", "unknown access 0", [](ArtifactT &a) { launch(a, 0).operands[1]->access = static_cast<Access>(0); }},
    {"A3", "unknown dtype 77", [](ArtifactT &a) { launchView(a, 0, 1).dtype = static_cast<DType>(77); }},
    {"A3", "input 1 has no view", [](ArtifactT &a) { train(a).inputs[1]->view.reset(); }},

    {"A4", "is a collective", makeCollective, ExitCode::VersionMismatch},
    {"A4", "is rank 0 of 2", [](ArtifactT &a) { plan(a).world_size = 2; }, ExitCode::VersionMismatch},

    {"A5", "variable name 'w' occurs twice", [](ArtifactT &a) { a.variables[1]->aliases = {"w"}; }},
    {"A5", "entry name '' is empty", [](ArtifactT &a) { eval(a).name.clear(); }},
    {"A5", "entry name 'train_step' occurs twice", [](ArtifactT &a) { eval(a).name = "train_step"; }},
    {"A5", "entry 'train_step' input name 'x' occurs twice", [](ArtifactT &a) { train(a).inputs[1]->name = "x"; }},
    {"A5", "is empty or not UTF-8 text", [](ArtifactT &a) { a.variables[2]->name = "\xff\x1b[31m"; }},
    {"A5", "belongs to 'v', which does not exist", [](ArtifactT &a) { a.variables[1]->owner = "v"; }},
    {"A5", "names 2 dimensions and gives 1 values", [](ArtifactT &a) { plan(a).dim_names.push_back("seq"); }},

    {"A6", "'../tiny.safetensors' is not a plain file name", [](ArtifactT &a) { a.weights_file = "../tiny.safetensors"; }},
    {"A6", "'/etc/passwd' is not a plain file name", [](ArtifactT &a) { a.weights_file = "/etc/passwd"; }},
    {"A6", "'..' is not a plain file name", [](ArtifactT &a) { a.weights_file = ".."; }},
    {"A6", "no weights file is named", [](ArtifactT &a) { a.weights_file.clear(); }},
    {"A6", "has no key in it", [](ArtifactT &a) { a.variables[0]->init_key.clear(); }},

    {"A7", "the target has no kind", [](ArtifactT &a) { a.target->kind.clear(); }},
    {"A7", "5000 threads", [](ArtifactT &a) { a.target->threads = 5000; }},

    {"A8", "unknown format 'exe'", [](ArtifactT &a) { a.modules[0]->format = "exe"; }},
    {"A8", "a kernel module is empty", [](ArtifactT &a) { a.modules[0]->data.clear(); }},
    {"A8", "kernel 'add' is in module 1 of 1", [](ArtifactT &a) { a.kernels[1]->module_ = 1; }},
    {"A8", "kernel 'add' has no usable symbol", [](ArtifactT &a) { a.kernels[1]->symbol.clear(); }},

    {"A9", "arena 0 has 0 bytes", [](ArtifactT &a) { plan(a).arenas[0]->bytes = 0; }},
    {"A9", "arena 0 has 281,474,976,710,656 bytes", [](ArtifactT &a) { plan(a).arenas[0]->bytes = uint64_t{1} << 48; }},
    {"A9", "arena 1 has alignment 96", [](ArtifactT &a) { plan(a).arenas[1]->alignment = 96; }},
    {"A9", "arena 1 has alignment 32", [](ArtifactT &a) { plan(a).arenas[1]->alignment = 32; }},

    {"A10", "buffer 6 'h' is in arena 2 of 2", [](ArtifactT &a) { local(a, H).arena = 2; }},
    {"A10", "does not lie in arena 0 of 1,024 bytes", [](ArtifactT &a) { local(a, H).offset = 1024; }},
    {"A10", "does not lie in arena 0", [](ArtifactT &a) { local(a, H).offset = UINT64_MAX - 63; }},
    {"A10", "does not lie in arena 0", [](ArtifactT &a) { local(a, H).bytes = UINT64_MAX - 63; }},
    {"A10", "does not lie in arena 0", [](ArtifactT &a) { plan(a).buffers[3]->bytes = 1024; }},
    {"A10", "has offset 392, expected a multiple of 64", [](ArtifactT &a) { local(a, H).offset = 392; }},

    {"A11", "persistent buffers 0 'w' [0, 16) and 1 'm' [0, 16) share bytes",
     [](ArtifactT &a) { plan(a).buffers[1]->offset = 0; }},
    {"A11", "persistent buffers 0 'w' [0, 144) and 2 'seed' [128, 144)",
     [](ArtifactT &a) {
       plan(a).buffers[0]->bytes = 144;
       plan(a).buffers[1]->offset = 256;
     }},

    {"A12", "variable 'w' takes 20 bytes, its buffer has 16", [](ArtifactT &a) { a.variables[0]->shape = {5}; }},
    {"A12", "variable 'm' takes 4 bytes, its buffer has 65",
     [](ArtifactT &a) {
       a.variables[1]->shape = {1};
       plan(a).buffers[1]->bytes = 65;
       plan(a).buffers[1]->offset = 768;
       train(a).peak_bytes = eval(a).peak_bytes = 896;
     }},
    {"A12", "variable 'm' has an impossible shape", [](ArtifactT &a) { a.variables[1]->shape = {-1}; }},
    {"A12", "variable 'm' has an impossible shape",
     [](ArtifactT &a) { a.variables[1]->shape = {int64_t{1} << 40, int64_t{1} << 40}; }},
    {"A12", "has 4 persistent buffers for 5 variables",
     [](ArtifactT &a) {
       a.variables.push_back(std::make_unique<VariableT>());
       a.variables.back()->name = "extra";
     }},

    {"A13", "buffer 6 'h' lives from command 0 to 10 of 10", [](ArtifactT &a) { local(a, H).last_command = 10; }},
    {"A13", "buffer 6 'h' lives from command 3 to 1 of 10", [](ArtifactT &a) { local(a, H).first_command = 3; }},

    {"A14", "buffer 5 'y' [192, 208) shares bytes with the persistent buffer 3 'two' [192, 208)",
     [](ArtifactT &a) { eval(a).buffers[1]->offset = 192; }},
    {"A14", "shares bytes with the persistent buffer 3 'two'",
     [](ArtifactT &a) {
       plan(a).arenas[0]->bytes = 2048;
       promise(a, 2048 + 64);
       plan(a).buffers[3]->offset = 1024;
       eval(a).buffers[1]->offset = 960;
       eval(a).buffers[1]->bytes = 128;
       train(a).peak_bytes = eval(a).peak_bytes = 2048;
     }},

    {"A15", "buffer 8 't2' [448, 464) and buffer 9 'loss' [448, 452) share bytes while both live at command 8",
     [](ArtifactT &a) { local(a, Loss).offset = 448; }},
    {"A15", "share bytes while both live at command 2", [](ArtifactT &a) { local(a, T2).bytes = 32; }},
    {"A15", "share bytes while both live at command 2", [](ArtifactT &a) { local(a, T).last_command = 3; }},

    {"A16", "operand 2 is in buffer 99 of 12", [](ArtifactT &a) { launchView(a, 0, 2).buffer = 99; }},
    {"A16", "reaches byte 20 of 16", [](ArtifactT &a) { launchView(a, 0, 2).shape = {5}; }},
    {"A16", "reaches byte 20 of 16", [](ArtifactT &a) { launchView(a, 0, 2).offset = 4; }},
    {"A16", "reaches byte 28 of 16", [](ArtifactT &a) { launchView(a, 0, 1).strides = {2}; }},
    {"A16", "impossible shape, strides or offset", [](ArtifactT &a) { launchView(a, 0, 1).strides = {-1}; }},
    {"A16", "impossible shape, strides or offset", [](ArtifactT &a) { launchView(a, 0, 1).strides = {}; }},
    {"A16", "impossible shape, strides or offset", [](ArtifactT &a) { launchView(a, 0, 1).strides = {INT64_MAX}; }},
    {"A16", "impossible shape, strides or offset", [](ArtifactT &a) { launchView(a, 0, 1).shape = {-4}; }},
    {"A16", "impossible shape, strides or offset", [](ArtifactT &a) { launchView(a, 0, 1).offset = UINT64_MAX - 3; }},
    {"A16", "impossible shape, strides or offset",
     [](ArtifactT &a) {
       launchView(a, 0, 1).shape = {INT64_MAX, INT64_MAX};
       launchView(a, 0, 1).strides = {INT64_MAX, INT64_MAX};
     }},
    {"A16", "impossible shape, strides or offset",
     [](ArtifactT &a) {
       launchView(a, 0, 1).shape.assign(9, 1);
       launchView(a, 0, 1).strides.assign(9, 1);
     }},
    {"A16", "starts at byte 2, not a multiple of its element size",
     [](ArtifactT &a) {
       launchView(a, 0, 1).offset = 2;
       launchView(a, 0, 1).shape = {3};
     }},
    {"A16", "output 'y' f32[2]{2} is not contiguous",
     [](ArtifactT &a) {
       eval(a).outputs[0]->view->shape = {2};
       eval(a).outputs[0]->view->strides = {2};
     }},
    {"A16", "input 'x' f32[5] of buffer 4 'x' reaches byte 20", [](ArtifactT &a) { train(a).inputs[0]->view->shape = {5}; }},

    {"A17", "command 9 'sgd' uses buffer 6 'h', which lives from command 0 to 1",
     [](ArtifactT &a) { launchView(a, 9, 2).buffer = H; }},
    {"A17", "input 'lr' is in buffer 5 'lr', which lives only from command 1",
     [](ArtifactT &a) { local(a, Lr).first_command = 1; }},
    {"A17", "output 'loss' is in buffer 9 'loss', which dies at command 8 of 10",
     [](ArtifactT &a) { local(a, Loss).last_command = 8; }},
    {"A17", "writes the constant 'two'", [](ArtifactT &a) { launchView(a, 9, 1).buffer = Two; }},

    {"A18", "writes elements of f32[4]{0} of buffer 0 'w' more than once",
     [](ArtifactT &a) { launchView(a, 9, 0).strides = {0}; }},
    {"A18", "operands 0 and 1 (f32[4] of buffer 0 'w', f32[4] of buffer 0 'w') overlap",
     [](ArtifactT &a) { launchView(a, 9, 1).buffer = W; }},
    {"A18", "operands 0 and 2 (f32[3] of buffer 0 'w', f32[3] of buffer 0 'w') overlap",
     [](ArtifactT &a) {
       launchView(a, 9, 0).shape = launchView(a, 9, 2).shape = {3};
       launchView(a, 9, 2).buffer = W;
       launchView(a, 9, 2).offset = 4;
     }},

    {"A19", "command 2 'add two' reads f32[4] of buffer 7 't', which nothing has written",
     [](ArtifactT &a) { callView(a, 1, 1).buffer = M; }},
    {"A19", "command 2 'add two' reads f32[4] of buffer 7 't', which nothing has written",
     [](ArtifactT &a) { callView(a, 1, 0).shape = callView(a, 1, 1).shape = {3}; }},
    {"A19", "output 'loss' reads f32[] of buffer 9 'loss', which nothing has written",
     [](ArtifactT &a) { callView(a, 8, 1).buffer = M; }},
    {"A19", "command 9 'sgd' reads f32[] of buffer 5 'lr', which nothing has written",
     [](ArtifactT &a) { train(a).inputs.pop_back(); }},

    {"A20", "command 2 'add two' runs kernel 3 of 3", [](ArtifactT &a) { launch(a, 2).kernel = 3; }},
    {"A20", "has extent 4 in grains of 0", [](ArtifactT &a) { launch(a, 2).grain = 0; }},
    {"A20", "has extent 9,223,372,036,854,775,808", [](ArtifactT &a) { launch(a, 2).extent = uint64_t{1} << 63; }},

    {"A21", "command 1 'copy h' calls no operation",
     [](ArtifactT &a) { call(a, 1).op.clear(); }},
    {"A21", "has the attribute 'axis' twice",
     [](ArtifactT &a) {
       addAttribute(a, "axis");
       addAttribute(a, "axis");
     }},
    {"A21", "has operand 3 of 3 as its workspace", [](ArtifactT &a) { call(a, 8).workspace = 3; }},
    {"A21", "has operand -2 of 3 as its workspace", [](ArtifactT &a) { call(a, 8).workspace = -2; }},
    {"A21", "expected a written, contiguous view",
     [](ArtifactT &a) {
       callView(a, 8, 2).shape = {64};
       callView(a, 8, 2).strides = {2};
     }},

    {"A22", "command 5 'offload t2' copies f32[2] to f32[4]", [](ArtifactT &a) { copy(a).source->shape = {2}; }},
    {"A22", "copies f32[4]{0} to f32[4]", [](ArtifactT &a) { copy(a).source->strides = {0}; }},

    {"A23", "command 0 'mul' is on stream 2 of 2", [](ArtifactT &a) { train(a).commands[0]->stream = 2; }},
    {"A23", "has 17 streams", [](ArtifactT &a) { train(a).streams = 17; }},
    {"A23", "has 0 streams", [](ArtifactT &a) { train(a).streams = 0; }},
    {"A23", "has 4294967295 events for 10 commands", [](ArtifactT &a) { train(a).events = UINT32_MAX; }},
    {"A23", "command 6 'offloaded' names event 1 of 1", [](ArtifactT &a) { train(a).events = 1; }},
    {"A23", "command 4 'await' waits for event 1, which is not recorded before",
     [](ArtifactT &a) { train(a).commands[4]->body.AsWaitEvent()->event = 1; }},
    {"A23", "command 6 'offloaded' records event 0 again",
     [](ArtifactT &a) {
       train(a).commands[6]->body.AsRecordEvent()->event = 0;
       train(a).commands[7]->body.AsWaitEvent()->event = 0;
     }},

    {"A24", "command 5 'offload t2' uses f32[4] of buffer 8 't2' without waiting",
     [](ArtifactT &a) { train(a).commands[4]->stream = 0; }},
    {"A24", "command 8 'loss' uses f32[4] of buffer 11 'kept' without waiting",
     [](ArtifactT &a) { train(a).commands[7]->stream = 1; }},

    {"A25", "promises 1,024 arena bytes, its arenas take 1,088", [](ArtifactT &a) { promise(a, 1024); }},
    {"A25", "its parts add up to", [](ArtifactT &a) { plan(a).memory->training_bytes -= 1; }},
    {"A25", "its parts add up to 18,446,744,073,709,551,615", [](ArtifactT &a) { plan(a).memory->library_bytes = UINT64_MAX; }},
    {"A25", "device arenas of 1,024 bytes over its budget of 512", [](ArtifactT &a) { plan(a).budget_bytes = 512; }},
    {"A25", "'train_step' promises a peak of 703 bytes but uses 704", [](ArtifactT &a) { train(a).peak_bytes = 703; }},
    {"A25", "has 705 live bytes in a peak of only 704", [](ArtifactT &a) { train(a).live_bytes_at_peak = 705; }},
    {"A25", "peaks at command 10 of 10", [](ArtifactT &a) { train(a).peak_command = 10; }},

    {"A3", "entry 'train_step' proof has no bound", [](ArtifactT &a) { proof(a).bound.reset(); }},
    {"A3", "or one of an unknown kind", [](ArtifactT &a) { proof(a).bound->proof = static_cast<BoundProof>(4); }},
    {"A3", "entry 'train_step' proof has no problem", [](ArtifactT &a) { proof(a).problem.reset(); }},
    {"A3", "explanation 1 is missing", [](ArtifactT &a) { proof(a).explanations[1].reset(); }},
    {"A3", "of an unknown fate", [](ArtifactT &a) { proof(a).explanations[1]->fate = static_cast<Fate>(5); }},
    {"A3", "curve point 1 is missing", [](ArtifactT &a) { proof(a).curve[1].reset(); }},
    {"A3", "curve point 1 has no bound", [](ArtifactT &a) { proof(a).curve[1]->bound.reset(); }},

    {"A26", "problem claims 0 bytes of text", [](ArtifactT &a) { proof(a).problem->text_bytes = 0; }},
    {"A26", "claims 268,435,457 bytes of text",
     [](ArtifactT &a) { proof(a).problem->text_bytes = (uint64_t{1} << 28) + 1; }},
    {"A26", "claims 268,435,456 bytes of text in 8,191",
     [](ArtifactT &a) {
       proof(a).problem->bytes.resize(8191);
       proof(a).problem->text_bytes = uint64_t{1} << 28;
     }},
    {"A26", "bytes of text in 0", [](ArtifactT &a) { proof(a).problem->bytes.clear(); }},
    {"A26", "has a proof without steps", [](ArtifactT &a) { proof(a).steps.clear(); }},
    {"A26", "has a proved floor of 705 bytes above its peak of 704", [](ArtifactT &a) { proof(a).peak_floor_bytes = 705; }},
    {"A26", "has a peak of 704 bytes over its budget of 703", [](ArtifactT &a) { proof(a).budget_bytes = 703; }},
    {"A26", "predicts impossible seconds", [](ArtifactT &a) { proof(a).seconds = NAN; }},
    {"A26", "predicts impossible seconds", [](ArtifactT &a) { proof(a).keep_all_seconds = INFINITY; }},
    {"A26", "predicts impossible seconds", [](ArtifactT &a) { proof(a).keep_all_seconds = -1; }},
    {"A26", "predicts impossible seconds", [](ArtifactT &a) { proof(a).stall_seconds = 1; }},
    {"A26", "has an impossible time bound", [](ArtifactT &a) { proof(a).bound->seconds = INFINITY; }},
    {"A26", "curve point 1 has an impossible time bound", [](ArtifactT &a) { proof(a).curve[1]->bound->seconds = -1; }},
    {"A26", "has a bound without its certificate",
     [](ArtifactT &a) { proof(a).bound->proof = BoundProof::Certificate; }},
    {"A26", "has a certificate that no bound refers to",
     [](ArtifactT &a) { proof(a).bound->certificate = std::make_unique<CompressedTextT>(); }},
    {"A26", "certificate claims 0 bytes of text",
     [](ArtifactT &a) {
       proof(a).bound->proof = BoundProof::Certificate;
       proof(a).bound->certificate = std::make_unique<CompressedTextT>();
     }},
    {"A26", "explains 'h' with impossible seconds", [](ArtifactT &a) { proof(a).explanations[1]->recompute_seconds = NAN; }},
    {"A26", "in text that is not UTF-8", [](ArtifactT &a) { proof(a).explanations[1]->reason = "\xff"; }},

    {"A27", "has a curve of 4097 points",
     [](ArtifactT &a) {
       while (proof(a).curve.size() < 4097)
         proof(a).curve.push_back(std::make_unique<CurvePointT>(*proof(a).curve[1]));
     }},
    {"A27", "curve point 0 has impossible extra seconds", [](ArtifactT &a) { proof(a).curve[0]->extra_seconds = NAN; }},
    {"A27", "curve point 1 takes 705 bytes of a budget of 704", [](ArtifactT &a) { proof(a).curve[1]->arena_bytes = 705; }},
    {"A27", "has a budget of 1,024 bytes after one of 1,024", [](ArtifactT &a) { proof(a).curve[1]->budget_bytes = 1024; }},
    {"A27", "curve point 1 is faster or larger", [](ArtifactT &a) { proof(a).curve[0]->extra_seconds = 2e-6; }},
    {"A27", "curve point 1 is faster or larger", [](ArtifactT &a) { proof(a).curve[0]->arena_bytes = 703; }},
};

std::set<std::string> rulesIn(const std::string &message) {
  static const std::regex label("(A[0-9]+): ");
  std::set<std::string> rules;
  for (std::sregex_iterator match(message.begin(), message.end(), label), end; match != end; ++match)
    rules.insert((*match)[1]);
  return rules;
}

} // namespace

TEST(ArtifactRules, theTinyArtifactIsValid) {
  Status status = verifyArtifact(tinyArtifact());
  EXPECT_TRUE(status) << status.message();
}

TEST(ArtifactRules, eachMutationBreaksExactlyItsRule) {
  for (const RuleCase &rule : cases) {
    SCOPED_TRACE(std::string(rule.rule) + " " + rule.message);
    ArtifactT artifact = tinyArtifact();
    rule.mutate(artifact);
    Status status = verifyArtifact(artifact);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.code(), rule.code);
    EXPECT_THAT(status.message(), testing::HasSubstr(rule.message));
    EXPECT_THAT(rulesIn(status.message()), testing::ElementsAre(rule.rule)) << status.message();
  }
}

TEST(ArtifactRules, everyRuleHasAMutation) {
  std::set<std::string> covered;
  for (const RuleCase &rule : cases)
    covered.insert(rule.rule);
  for (int i = 2; i <= 27; ++i) // A1 is about bytes: ArtifactFileTest
    EXPECT_TRUE(covered.count("A" + std::to_string(i))) << "A" << i;
}

TEST(ArtifactRules, listsAllViolationsAndCountsTheRest) {
  ArtifactT artifact = tinyArtifact();
  for (auto &buffer : plan(artifact).buffers)
    buffer->arena = 7;
  for (auto &buffer : train(artifact).buffers)
    buffer->arena = 7;
  std::string message = verifyArtifact(artifact).message();
  EXPECT_THAT(message, testing::HasSubstr("buffer 0 'w' is in arena 7"));
  EXPECT_THAT(message, testing::HasSubstr("; and 4 others"));
}

// A buffer may take over the bytes of one that the same command reads for the last time, element by element only.
TEST(ArtifactRules, inPlacePairsMustVisitTheSameElements) {
  ArtifactT artifact = tinyArtifact();
  for (size_t operand : {0, 2}) {
    launchView(artifact, 2, operand).shape = {2, 2};
    launchView(artifact, 2, operand).strides = {2, 1};
  }
  EXPECT_TRUE(verifyArtifact(artifact)) << "same order, other shape";
  launchView(artifact, 2, 0).strides = {1, 2};
  EXPECT_THAT(verifyArtifact(artifact).message(), testing::HasSubstr("A15: entry 'train_step' buffer 7 't'"));
  artifact = tinyArtifact();
  artifact.plans[0]->entries[0]->outputs[0]->view = makeView(T, DType::F32, {});
  EXPECT_THAT(verifyArtifact(artifact).message(), testing::HasSubstr("A15: ")) << "an output may not be taken over";
}

TEST(ArtifactRules, onlyElementwiseLibraryCallsMayRunInPlace) {
  ArtifactT artifact = tinyArtifact();
  local(artifact, T).offset = 384; // t takes over h in 'copy h'
  local(artifact, T2).offset = 384;
  EXPECT_TRUE(verifyArtifact(artifact)) << verifyArtifact(artifact).message();
  call(artifact, 1).op = "dot";
  EXPECT_THAT(verifyArtifact(artifact).message(), testing::HasSubstr("A18: entry 'train_step' command 1 'copy h'"));
}

TEST(ArtifactRules, hostileTextIsEscapedInMessages) {
  ArtifactT artifact = tinyArtifact();
  artifact.weights_file = "../\x1b[31mred\n";
  EXPECT_THAT(verifyArtifact(artifact).message(), testing::HasSubstr("'../\\x1b[31mred\\x0a'"));
}

TEST(ArtifactRules, emptyBuffersAndViewsAreAllowed) {
  ArtifactT artifact = tinyArtifact();
  eval(artifact).buffers.push_back(std::make_unique<BufferT>());
  eval(artifact).buffers.back()->name = "nothing";
  auto operand = std::make_unique<OperandT>();
  operand->view = makeView(6, DType::F32, {0, 4});
  eval(artifact).commands[0]->body.AsLaunch()->operands.push_back(std::move(operand));
  Status status = verifyArtifact(artifact);
  EXPECT_TRUE(status) << status.message();
}
