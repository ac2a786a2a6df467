// SPDX-License-Identifier: Apache-2.0
// All floors and goals of this benchmark. Each is a ratio of two measurements of the same run, or their
// difference. A floor must hold. A goal is the limit or the result of a bare prototype.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

namespace bench {

// The meaning of a ratio.
enum class Unit {
  kTimesAsFast,  // peer's time over libdist's: more is better
  kOfLimit,      // libdist's bytes per second over the limit's: more is better
  kHops,         // libdist's time over that of a cache-line hop between cores: less is better
  kTimePerByte,  // libdist's time over its own time for the same number of bytes of f32: less is better
  kCpuShare,     // CPU time over wall time: less is better
  kOfOrdered,    // libdist's time over that of its ordered sum of the same data: less is better
  kOfLonger,     // libdist's time over that of the longer of two things that it does at once: less is better
  kOfInPlace,    // libdist's time over its own in place: less is better
  kExponent,     // the exponent with which libdist's time grows: less is better
  kOfC,          // libdist's time from another language over its time from C: less is better
  kAboveC,       // libdist's time from another language minus its time from C, in us: less is better
};
constexpr bool more_is_better(Unit unit) { return unit == Unit::kTimesAsFast || unit == Unit::kOfLimit; }

// Peers of one kind, of which the fastest counts; and libdist's bindings.
enum class PeerGroup { kMpi, kOneCcl, kGloo, kJax, kTensorFlow, kVllm, kDeepSpeed, kGo, kJava, kPython };
inline constexpr std::array kPeerGroups{PeerGroup::kMpi,      PeerGroup::kOneCcl,     PeerGroup::kGloo,
                                        PeerGroup::kJax,      PeerGroup::kTensorFlow, PeerGroup::kVllm,
                                        PeerGroup::kDeepSpeed};
inline constexpr std::array kBindings{PeerGroup::kGo, PeerGroup::kJava, PeerGroup::kPython};
const char* group_word(PeerGroup group);

struct Target {
  double floor, goal;
};
using MaybeTarget = std::optional<Target>;

namespace targets {

// all_reduce of f32 in place on 2 replicas with one core each, by size:
//                                     64 B       1 KiB     16 KiB      256 KiB     1 MiB        16 MiB 64 MiB
inline constexpr std::array<Target, 7> kSpinBarrier{
    {{1.1, 1.3}, {0.95, 1.05}, {0.95, 1}, {0.95, 1}, {0.97, 1}, {0.97, 1}, {0.98, 1}}};
inline constexpr Target kSpinBarrier16Bit{0.95, 1};  // f16 and bf16, in place and out of place, of any size
inline constexpr std::array<Target, 7> kStdBarrier{
    {{3, 5}, {2, 4}, {4, 7}, {1.5, 2}, {1.05, 1.2}, {1, 1.05}, {1, 1.05}}};
inline constexpr std::array<Target, 7> kOpenMp{
    // 0 = no target: at small sizes, a single caller without replicas is not comparable
    {{0, 0}, {0, 0}, {1.2, 1.5}, {1, 1.2}, {0.97, 1.1}, {0.95, 1.05}, {0.97, 1.05}}};
inline constexpr std::array<Target, 7> kMpi{
    {{1.4, 2}, {1.8, 2.5}, {4.5, 6.5}, {4.5, 6}, {4, 5}, {4, 5}, {5.5, 7}}};
inline constexpr std::array<Target, 7> kOneCcl{
    {{50, 80}, {35, 60}, {20, 40}, {7, 9}, {5, 6}, {4, 5}, {2.3, 3}}};
inline constexpr std::array<Target, 7> kGloo{
    {{700, 900}, {700, 1000}, {280, 350}, {45, 75}, {25, 32}, {12, 18}, {6.5, 8.5}}};
inline constexpr std::array<Target, 7> kJax{
    {{70, 120}, {47, 90}, {26, 50}, {12, 16}, {9, 11}, {6, 8}, {5.9, 8}}};
inline constexpr std::array<Target, 7> kTensorFlow{
    {{800, 1400}, {600, 1000}, {400, 600}, {60, 97}, {30, 42}, {8, 12}, {4, 6}}};
// These also apply to 16-bit types.
inline constexpr std::array<Target, 7> kVllm{
    {{2, 2.5}, {1.3, 1.5}, {1, 1.3}, {1.3, 2}, {1.8, 2.2}, {1.5, 2}, {1.5, 2}}};
inline constexpr std::array<Target, 7> kDeepSpeed{
    {{0.95, 1}, {0.95, 1}, {0.95, 1}, {0.95, 1}, {0.95, 1}, {0.95, 1}, {0.95, 1}}};

// The same in f16 and bf16, at 1 MiB.
inline constexpr Target k16BitJax{12, 20};
inline constexpr Target k16BitOneCcl{10, 13};

// Out of place relative to in place, up to 1 MiB, in loops in which replicas write and read their tensors.
inline constexpr Target kOutOfPlace{1.5, 1.5};

// More replicas than cores, relative to std::barrier and fused slices.
inline constexpr Target kOversubscribedSmall{1.7, 2.5};  // <= 16 KiB
inline constexpr Target kOversubscribedLarge{1.1, 1.5};

// Up to this size, relative to a copy into one of two slots of each replica, with one phase.
inline constexpr Target kOnePhase{0.95, 1};
inline constexpr size_t kOnePhaseBytes = size_t{8} << 10;

// More replicas than cores, relative to loops of the last one to arrive.
inline constexpr Target kLastSums{0.9, 1};

// The barrier relative to one that spins: 1.2 and 1.1 times its time.
inline constexpr Target kSpinBarrierAlone{1 / 1.2, 1 / 1.1};

// The other collectives up to 64 KiB, relative to a spin barrier and loops: 1.4 and 1.1 times their time.
inline constexpr Target kHanding{1 / 1.4, 1 / 1.1};

// Lists of 1,000 tensors in a work loop. With 1 KiB or more each, relative to such loops. With 64 bytes each,
// relative to one tensor with the same total size: 3 times its time plus 10 ns per tensor, on machines that
// take 3 us for that tensor.
inline constexpr Target kLongList{0.95, 1};
inline constexpr Target kListOfOne{0.16, 0.25};

// How time grows from 32 to 256 replicas, and with the length of a list; the second if R members have R
// pieces each.
inline constexpr Target kGrowth{1.3, 1.1};
inline constexpr Target kGrowthOfPieces{2.3, 2.1};
// An empty run with groups that it does not use, relative to one without groups.
inline constexpr Target kUnusedGroups{0.9, 1};

// The empty dist_run on 2 replicas, relative to OpenMP's empty parallel region.
inline constexpr Target kRunHot{2.5, 5};
inline constexpr Target kRunFromSleep{1, 1};
// Relative to a pool of threads that wait in the same way: 1.2 times its time.
inline constexpr Target kRunPool{1 / 1.2, 1};
inline constexpr Target kRunHotJax{80, 200};
inline constexpr Target kRunHotTensorFlow{400, 900};

// An idle strategy must use no CPU time, within the accuracy of the measurement.
inline constexpr Target kIdle{0.001, 0.001};

// Limits.
inline constexpr Target kAllReduceHops{3.5, 2};  // 64 bytes, 2 replicas
inline constexpr Target kBarrierHops{2, 1.2};
inline constexpr Target kMemoryInPlace{0.9, 1.1};  // >= 64 MiB, relative to the bytes per second of rmw2
inline constexpr Target kMemoryOutOfPlace{0.85, 1.1};
inline constexpr Target kOneOutput{0.95, 1.15};    // >= 64 MiB, relative to libdist in place
inline constexpr Target kTimePerByte16{1.5, 1.1};  // f16, bf16, >= 16 MiB, relative to libdist's f32

// Lists and steps of gradients, on replicas with one core each.
inline constexpr Target kBatchReduceTo{1.2, 1.2};  // relative to reduce_to, one after another
inline constexpr Target kFusedStep{1.3, 1.3};      // relative to all_reduce followed by loops

// 8 contributions of 1 MiB on 2 replicas.
inline constexpr Target kReproducible{4, 2};
inline constexpr Target kTree{1.25, 1};
// Computation and all_reduce of equal length, if cores are free.
inline constexpr Target kOverlap{1.25, 1.1};

// Go and Java relative to C: the additional cost of a call in us for short operations, and the ratio for an
// all_reduce of 1 MiB.
inline constexpr Target kBindingCall{0.3, 0.2};
inline constexpr Target kBinding1MiB{1.2, 1.05};

// The speed of all_reduce between worker processes relative to what it uses: with Gloo, Gloo's fastest
// algorithm; with gRPC, an exchange over bare streams from 1 MiB on.
inline constexpr Target kWorkersByGloo{1, 1.1};  // <= 64 KiB
inline constexpr Target kLargeWorkersByGloo{0.9, 1};
inline constexpr Target kLargeWorkersByGrpc{0.8, 1};
// With shared memory, relative to everything else that processes of one machine can use.
inline constexpr Target kWorkersByShm{0.9, 1.2};

// Exposed communication of a training step, relative to PyTorch's DDP.
inline constexpr Target kExposed{0.8, 0.8};

// Variables of a parameter server: the speed of a push or pull relative to a unary call of plain gRPC.
// Closures: the speed relative to TensorFlow's coordinator.
inline constexpr Target kSmallPushPull{0.7, 1};  // 4 bytes
inline constexpr Target kLargePushPull{0.8, 1};  // 16 MiB
inline constexpr Target kClosuresTensorFlow{5, 10};

// An encoder on one and on two logical devices: its speed relative to ONNX Runtime with the same number of
// threads, in rounds in which two of its threads are at least this many times as fast as one. Also the share
// of a pass that two devices' collectives take.
inline constexpr Target kSplitOne{0.9, 1};
inline constexpr Target kSplitTwo{0.9, 1};
inline constexpr double kSplitScales = 1.6;
inline constexpr Target kSplitCollectives{0.05, 0.02};

// Tokens per second with 64 all_reduces, relative to a spin barrier, vLLM and llama.cpp. Also of 4 members
// under a quota of one CPU, because then spinning uses the time of members that could continue.
inline constexpr Target kDecode{0.95, 1};
inline constexpr Target kDecodeQuota{10, 100};
// The others' all_reduce time over libdist's, between products.
inline constexpr Target kDecodeReduce{1.2, 1.2};

constexpr size_t kLargeBytes = size_t{64} << 20;

// The index of a size in the tables above.
constexpr size_t size_class(size_t bytes) {
  constexpr std::array<size_t, 6> up_to{64, 1 << 10, 16 << 10, 256 << 10, 1 << 20, 16 << 20};
  size_t column = 0;
  while (column < up_to.size() && bytes > up_to[column]) ++column;
  return column;
}

constexpr const std::array<Target, 7>& all_reduce(PeerGroup group) {
  switch (group) {
    case PeerGroup::kMpi: return kMpi;
    case PeerGroup::kOneCcl: return kOneCcl;
    case PeerGroup::kGloo: return kGloo;
    case PeerGroup::kJax: return kJax;
    case PeerGroup::kVllm: return kVllm;
    case PeerGroup::kDeepSpeed: return kDeepSpeed;
    default: break;
  }
  return kTensorFlow;
}

}  // namespace targets

// Compares a ratio with a floor or goal. Within 5 % counts as level, in which case a floor holds.
enum class Verdict { kNone, kMet, kLevel, kMissed };
constexpr Verdict judge(double ratio, double target, bool more_is_better) {
  const double share = more_is_better ? ratio / target : target / ratio;
  return share >= 1 ? Verdict::kMet : share >= 0.95 ? Verdict::kLevel : Verdict::kMissed;
}

}  // namespace bench
