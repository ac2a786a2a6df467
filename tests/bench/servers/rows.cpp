// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/servers/rows.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <stdexcept>

#include "tests/bench/harness.hpp"

namespace bench::servers {
namespace {

constexpr std::size_t kSizes[] = {4, std::size_t{64} << 10, std::size_t{1} << 20, std::size_t{16} << 20};
constexpr std::size_t kMostQuickly = std::size_t{64} << 10;
constexpr int kRounds = 15, kQuickRounds = 2, kQuickCalls = 3;
constexpr int kClosures = 1000, kQuickClosures = 20;
constexpr int kPeersClosures = 200;  // fewer, because TensorFlow's take longer
constexpr int kAtATime = 8;
constexpr double kFallAsleepUs = 2e6;

bool is_closure(Operation operation) {
  return operation == Operation::kClosure || operation == Operation::kClosurePush;
}

// The target for libdist's speed relative to plain gRPC's.
MaybeTarget target_of_plain(std::size_t bytes) {
  if (bytes == 4) return targets::kSmallPushPull;
  if (bytes == std::size_t{16} << 20) return targets::kLargePushPull;
  return {};
}

template <class Do>
double microseconds(Do&& one) {
  const double begin = now_us();
  one();
  return now_us() - begin;
}

// Divides "TensorFlow 2.21.0, eager" into library and form.
SideTimes side_named(const std::string& name, MaybeTarget target) {
  const std::size_t comma = std::min(name.find(", "), name.size());
  return {name.substr(0, comma), name.substr(std::min(comma + 2, name.size())), target, {}};
}

}  // namespace

struct Runner::Outsider {
  std::unique_ptr<Side> side;
  SideTimes times;
  bool lost;
};

Runner::Runner(const Settings& settings) : settings_(settings) {
  if (settings.peers == nullptr) return;
  peers_ = Peers(settings.peers);
  peers_.start(1);  // one worker, like libdist
}

int Runner::calls(std::size_t bytes) const {
  if (settings_.quick) return kQuickCalls;
  return bytes > std::size_t{1} << 20 ? 5 : bytes == std::size_t{1} << 20 ? 20 : 50;
}

std::vector<Runner::Outsider> Runner::outsiders(const RowTimes& row, const Plan& plan) {
  peers::Request request;
  request.operation = row.operation;
  request.bytes = row.bytes;
  request.plan = plan;
  // Empty closures that run one after another take at least as long as a gRPC call, so they are not judged.
  const bool judged = row.operation == Operation::kClosurePush ||
                      (row.operation == Operation::kClosure && row.closures_at_a_time > 1);
  const MaybeTarget target = judged ? MaybeTarget(targets::kClosuresTensorFlow) : MaybeTarget();
  for (;;) {  // again without a peer that is lost in its trial
    try {
      std::vector<Outsider> all;
      for (const PeerGroup group : kPeerGroups) {
        for (std::unique_ptr<Side>& side : peers_.all_sides(group, request)) {
          SideTimes times = side_named(side->name(), target);
          all.push_back({std::move(side), std::move(times), false});
        }
      }
      return all;
    } catch (const PeerLost& lost) {
      std::fprintf(stderr, "dist_bench_servers: %s\n", lost.what());
      peers_.forget_lost();
    }
  }
}

// Returns the medians of libdist and plain gRPC.
std::vector<double> Runner::take_calls(const RowTimes& row, Job& job) const {
  const bool pushes = row.operation == Operation::kPush;
  job.renew();
  if (!pushes) {
    job.push();
    job.plain_push();
  }
  Samples libdist, plain;
  for (int i = 0; i < calls(row.bytes); ++i) {
    libdist.push_back(microseconds([&] { pushes ? job.push() : job.pull(); }));
    plain.push_back(microseconds([&] { pushes ? job.plain_push() : job.plain_pull(); }));
  }
  if (pushes) {
    job.pull();
    job.plain_pull();
  }
  job.check();
  return {median(libdist), median(plain)};
}

double Runner::take_closures(bool push, Job& job) const {
  const int closures = settings_.quick ? kQuickClosures : kClosures;
  job.renew();
  job.push();
  const double us = microseconds([&] { job.run_closures(closures, push); });
  job.check_added(push ? closures : 0);
  return us / closures;
}

// Takes the turns of the row's own sides in order: libdist and, if the row has it, plain gRPC.
std::vector<double> Runner::take_turn(const RowTimes& row, Job& job) const {
  if (!is_closure(row.operation)) return take_calls(row, job);
  std::vector<double> us = {take_closures(row.operation == Operation::kClosurePush, job)};
  if (row.sides.size() == 1) return us;
  const int calls = settings_.quick ? kQuickClosures : kPeersClosures;
  const double all = microseconds([&] {
    for (int i = 0; i < calls; ++i) job.plain_push();
  });
  us.push_back(all / calls);
  return us;
}

// Runs a row: the turns of its own sides and of the peers.
RowTimes Runner::run_row(RowTimes row, Job& job) {
  Plan plan{Pace::kHot, 1, calls(row.bytes)};
  if (is_closure(row.operation)) plan = {Pace::kHot, settings_.quick ? kQuickClosures : kPeersClosures, 1};
  std::vector<Outsider> all = outsiders(row, plan);
  for (int round = -1; round < (settings_.quick ? kQuickRounds : kRounds); ++round) {
    const std::vector<double> us = take_turn(row, job);
    for (std::size_t side = 0; round >= 0 && side < us.size(); ++side) row.sides[side].us.push_back(us[side]);
    if (!all.empty() && !wait_until_quiet(job.processes(), kFallAsleepUs))
      throw std::runtime_error("the servers do not sleep while it is others' turn");
    for (Outsider& outsider : all) {
      if (outsider.lost) continue;
      Samples samples;
      try {
        outsider.side->block(plan, samples);
        if (round >= 0) outsider.times.us.push_back(median(samples));
      } catch (const PeerLost& lost) {
        std::fprintf(stderr, "dist_bench_servers: %s\n", lost.what());
        outsider.lost = true;
      }
    }
  }
  // A peer that has not had all turns is not compared.
  for (Outsider& outsider : all) {
    if (!outsider.lost) row.sides.push_back(std::move(outsider.times));
  }
  all.clear();
  peers_.forget_lost();
  return row;
}

std::vector<RowTimes> Runner::run() {
  std::vector<RowTimes> rows;
  const SideTimes libdist{"libdist", "", {}, {}};
  for (const std::size_t bytes : kSizes) {
    if (settings_.quick && bytes > kMostQuickly) break;
    Job job(bytes);
    const SideTimes plain{"plain gRPC", "", target_of_plain(bytes), {}};
    for (const Operation operation : {Operation::kPush, Operation::kPull})
      rows.push_back(run_row({operation, bytes, 1, {libdist, plain}}, job));
  }
  constexpr std::size_t kBytes = sizeof(float);
  const SideTimes call{"a call of plain gRPC", "", {}, {}};
  for (const int at_a_time : {1, kAtATime}) {
    Job job(kBytes, at_a_time);
    std::vector<SideTimes> own = {libdist};
    if (at_a_time == 1) own.push_back(call);
    rows.push_back(run_row({Operation::kClosure, kBytes, at_a_time, std::move(own)}, job));
    rows.push_back(run_row({Operation::kClosurePush, kBytes, at_a_time, {libdist}}, job));
  }
  return rows;
}

}  // namespace bench::servers
