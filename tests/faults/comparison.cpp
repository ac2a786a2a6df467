// SPDX-License-Identifier: Apache-2.0
// Determines the cells, when each library plays them, and the contents of a cell in the table.
#include "tests/faults/comparison.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <iterator>
#include <map>
#include <thread>

#include "tests/bench/harness.hpp"
#include "tests/bench/peer_process.hpp"
#include "tests/faults/peer_trial.hpp"
#include "tests/faults/report.hpp"
#include "tests/faults/side_by_side.hpp"

namespace faults {
namespace {

constexpr int kLanes = 6;  // cells played at a time; most of them only wait for a library that hangs
constexpr double kGuardUs = 10e6;
constexpr int kRanks = 2;

constexpr Fault kCompared[] = {Fault::kEarlyReturn, Fault::kErrorReturned, Fault::kSkipped,
                               Fault::kExtra,       Fault::kSwappedOrder,  Fault::kWrongDtype,
                               Fault::kWrongCount,  Fault::kWrongOp,       Fault::kWrongRoot,
                               Fault::kStalled,     Fault::kPastDeadline,  Fault::kThreadGone};
constexpr int32_t kExchanged[] = {DIST_COLLECTIVE_ALL_REDUCE, DIST_COLLECTIVE_REDUCE,
                                  DIST_COLLECTIVE_BROADCAST, DIST_COLLECTIVE_ALL_GATHER,
                                  DIST_COLLECTIVE_BARRIER};

struct ComparedFault {
  WorkerFault fault;
  Fault like;
};
constexpr ComparedFault kComparedOfProcesses[] = {
    {WorkerFault::kEarlyReturn, Fault::kEarlyReturn}, {WorkerFault::kErrorReturned, Fault::kErrorReturned},
    {WorkerFault::kOtherCollective, Fault::kSkipped}, {WorkerFault::kOtherOp, Fault::kWrongOp},
    {WorkerFault::kOtherDtype, Fault::kWrongDtype},   {WorkerFault::kOtherShape, Fault::kWrongCount},
    {WorkerFault::kOtherRoot, Fault::kWrongRoot},     {WorkerFault::kOtherOrder, Fault::kSwappedOrder},
    {WorkerFault::kLate, Fault::kPastDeadline},       {WorkerFault::kKilled, Fault::kThreadGone},
    {WorkerFault::kExited, Fault::kThreadGone},       {WorkerFault::kStopped, Fault::kStalled},
    {WorkerFault::kNeverStarted, Fault::kStalled}};

bool means_something(Fault fault, int32_t collective) {
  Cell cell;
  cell.collective = collective;
  switch (fault) {
    case Fault::kWrongDtype:
    case Fault::kWrongCount: return cell.tensors();
    case Fault::kWrongOp: return cell.reduces();
    case Fault::kWrongRoot: return cell.rooted();
    default: return true;
  }
}

struct Play {
  Trial trial;
  TrialResult result;
};

struct Peer {
  bench::PeerOffer offer;
  std::string name;  // with its version
  std::vector<Play> plays;
};

std::string text_of(const Trial& trial) {
  return trial.fault + ": " + trial.collective + ", blocking, rank " + std::to_string(trial.ranks - 1) +
         " of " + std::to_string(trial.ranks) + ", " + trial.peer->label;
}

void add_plays(const ComparisonOptions& options, const std::vector<Compared>& faults, Peer& peer) {
  for (const Compared& each : faults) {
    for (const int32_t collective : kExchanged) {
      if (!means_something(each.like, collective)) continue;
      const int32_t quick =
          each.like == Fault::kWrongRoot ? DIST_COLLECTIVE_BROADCAST : DIST_COLLECTIVE_ALL_REDUCE;
      if (options.quick && collective != quick) continue;
      const Trial trial{&peer.offer, each.fault, collective_name(collective), kRanks};
      if (text_of(trial).find(options.filter) != std::string::npos) peer.plays.push_back({trial, {}});
    }
  }
}

// Asks the peer for its name and for the cells that it cannot express.
void ask(Peer& peer) {
  peer.name = peer.offer.label;
  std::vector<Trial> trials;
  for (const Play& play : peer.plays) trials.push_back(play.trial);
  const std::vector<std::string> reasons = ask_peer(trials, peer.name);
  for (size_t i = 0; i < reasons.size(); ++i) peer.plays[i].result.why_not = reasons[i];
}

template <class Job>
void in_lanes(size_t jobs, Job job) {
  std::atomic<size_t> next{0};
  std::vector<std::thread> lanes;
  for (int i = 0; i < kLanes; ++i) {
    lanes.emplace_back([&] {
      for (size_t j; (j = next.fetch_add(1)) < jobs;) job(j);
    });
  }
  for (std::thread& lane : lanes) lane.join();
}

// Alternates between the peers, so that those that spin while they hang are spread over time.
void play_all(std::vector<Peer>& peers) {
  in_lanes(peers.size(), [&](size_t i) { ask(peers[i]); });
  std::vector<Play*> plays;
  for (size_t i = 0, more = 1; more != 0; ++i) {
    more = 0;
    for (Peer& peer : peers) {
      if (i >= peer.plays.size()) continue;
      ++more;
      if (peer.plays[i].result.why_not.empty()) plays.push_back(&peer.plays[i]);
    }
  }
  std::printf(
      "\n%zu cells of %zu peers, %d ranks, %d at a time; who has not returned %.0f s after the cause hangs\n",
      plays.size(), peers.size(), kRanks, kLanes, kGuardUs * 1e-6);
  std::fflush(stdout);
  std::atomic<size_t> done{0};
  in_lanes(plays.size(), [&](size_t i) {
    plays[i]->result = try_peer(plays[i]->trial, kGuardUs);
    if (isatty(STDERR_FILENO) != 0) std::fprintf(stderr, "\r%zu ", done.fetch_add(1) + 1);
  });
  if (isatty(STDERR_FILENO) != 0) std::fprintf(stderr, "\r");
}

// Kills orphans of processes that have died, which have become children of this process.
void end_orphans() {
  for (const pid_t process : bench::with_descendants(getpid())) {
    if (process != getpid()) kill(process, SIGKILL);
  }
  while (waitpid(-1, nullptr, 0) > 0) {
  }
}

// Formats a time as "82 us", "45 ms" or "2.0 s".
std::string shown(double us) {
  char text[32];
  const char* const format = us < 1e3 ? "%.0f us" : us < 1e6 ? "%.3g ms" : "%.1f s";
  std::snprintf(text, sizeof text, format, us < 1e3 ? us : us < 1e6 ? us * 1e-3 : us * 1e-6);
  return text;
}

// Formats the median. For processes, adds the 99th percentile if its text differs.
std::string shown(std::vector<double> us, bool processes) {
  if (!processes) return shown(bench::median(us));
  const std::string middle = shown(quantile(us, 0.5));
  const std::string late = shown(quantile(us, 0.99));
  return middle == late ? middle : middle + " / " + late;
}

// Summarizes a peer's results for one fault: the number of each kind, and their times. One line per kind,
// best first.
std::vector<std::string> summary(const std::vector<const TrialResult*>& results, bool processes) {
  struct Kind {
    int count = 0, went_on = 0;
    std::vector<double> us;
  };
  std::array<Kind, kSaws> kinds;
  for (const TrialResult* result : results) {
    Kind& kind = kinds[static_cast<size_t>(result->saw)];
    ++kind.count;
    kind.went_on += result->next == "right";
    for (const Witness& witness : result->witnesses) {
      if (witness.saw == result->saw) kind.us.push_back(witness.us);
    }
  }
  std::vector<std::string> lines;
  for (int saw = 0; saw < kSaws; ++saw) {
    const Kind& kind = kinds[static_cast<size_t>(saw)];
    if (kind.count == 0) continue;
    const bool some = kind.count < static_cast<int>(results.size());
    std::string line = (some ? std::to_string(kind.count) + " " : "") + saw_name(static_cast<Saw>(saw));
    const bool timed = static_cast<Saw>(saw) != Saw::kHung && static_cast<Saw>(saw) != Saw::kSilent;
    if (timed) line.append(" ").append(shown(kind.us, processes));
    if (kind.went_on == kind.count) line += " +";
    lines.push_back(line);
  }
  return lines;
}

std::vector<double> own_us(const Compared& fault) {
  std::vector<double> us;
  for (const int64_t ns : fault.libdist.latencies_ns) us.push_back(static_cast<double>(ns) * 1e-3);
  return us;
}

std::vector<std::string> own_summary(const Compared& fault, bool processes) {
  const int64_t bad = fault.libdist.wrong + fault.libdist.leftovers;
  if (fault.libdist.cells == 0) return {};
  if (bad != 0) return {std::to_string(bad) + " wrong"};
  std::string line = "named";
  const std::vector<double> us = own_us(fault);
  if (!us.empty()) line.append(" ").append(shown(us, processes));
  return {line.append(fault.goes_on ? " +" : "")};
}

// The times of the returns for one fault, as a JSON object.
std::string times_json(const std::string& who, const std::string& fault, const std::vector<double>& us) {
  std::string text = "    {\"peer\": " + quoted(who) + ", \"fault\": " + quoted(fault) +
                     ", \"returns\": " + std::to_string(us.size());
  if (us.empty()) return text + "}";
  char numbers[64];
  std::snprintf(numbers, sizeof numbers, ", \"p50_us\": %.1f, \"p99_us\": %.1f}", quantile(us, 0.5),
                quantile(us, 0.99));
  return text + numbers;
}

std::string to_json(const Peer& peer, const Play& play) {
  const auto& [trial, result] = play;
  std::string text = "    {\"peer\": " + quoted(trial.peer->label) + ", \"name\": " + quoted(peer.name) +
                     ", \"fault\": " + quoted(trial.fault) + ", \"collective\": " + quoted(trial.collective) +
                     ", \"ranks\": " + std::to_string(trial.ranks);
  if (!result.why_not.empty()) return text + ", \"not_played\": " + quoted(result.why_not) + "}";
  text += std::string(", \"saw\": ") + quoted(saw_name(result.saw)) + ", \"next\": " + quoted(result.next) +
          ", \"leftovers\": " + std::to_string(result.leftovers) + ", \"stderr\": " + quoted(result.words) +
          ", \"witnesses\": [";
  for (const Witness& witness : result.witnesses) {
    char us[32];
    std::snprintf(us, sizeof us, "%.1f", witness.us);
    text += (&witness == &result.witnesses.front() ? "" : ", ") + std::string("{\"rank\": ") +
            std::to_string(witness.rank) + ", \"saw\": " + quoted(saw_name(witness.saw)) +
            ", \"us\": " + (witness.us < 0 ? "null" : us) + ", \"message\": " + quoted(witness.message) + "}";
  }
  return text + "]}";
}

// Returns the results of the cells of one fault that were played.
std::vector<const TrialResult*> results_of(const Peer& peer, const Compared& fault) {
  std::vector<const TrialResult*> results;
  for (const Play& play : peer.plays) {
    if (play.trial.fault == fault.fault && play.result.why_not.empty()) results.push_back(&play.result);
  }
  return results;
}

SideBySide table_of(const std::vector<Peer>& peers, const std::vector<Compared>& faults, bool processes) {
  SideBySide table;
  table.columns.push_back("libdist");
  for (const Peer& peer : peers) {
    const size_t blank = peer.offer.label.find(' ');  // the rest distinguishes peers of one name
    table.columns.push_back(peer.name + (blank == std::string::npos ? "" : peer.offer.label.substr(blank)));
  }
  for (const Compared& fault : faults) {
    SideBySide::Row row{fault.fault, {own_summary(fault, processes)}};
    for (const Peer& peer : peers) row.cells.push_back(summary(results_of(peer, fault), processes));
    const bool any =
        std::any_of(row.cells.begin(), row.cells.end(), [](const auto& c) { return !c.empty(); });
    if (any) table.rows.push_back(std::move(row));
  }
  return table;
}

// Prints why a peer could not play cells, one line per reason.
void print_reasons(const Peer& peer) {
  std::map<std::string, std::vector<std::string>> faults;
  for (const Play& play : peer.plays) {
    if (play.result.why_not.empty()) continue;
    std::vector<std::string>& of = faults[play.result.why_not];
    if (of.empty() || of.back() != play.trial.fault) of.push_back(play.trial.fault);
  }
  for (const auto& [reason, of] : faults) {
    std::printf("  - %s: %s (", peer.offer.label.c_str(), reason.c_str());
    for (const std::string& fault : of) std::printf("%s%s", &fault == &of.front() ? "" : ", ", fault.c_str());
    std::printf(")\n");
  }
}

// Adds libdist's results for the fault in the blocking form.
template <class Result, class AnyFault>
void add_blocking(const std::vector<Result>& results, AnyFault fault, Tally& sum) {
  for (const Result& result : results) {
    if (result.fault != fault || result.form != Form::kBlocking) continue;
    sum.cells += result.cells, sum.wrong += result.wrong, sum.leftovers += result.leftovers;
    sum.latencies_ns.insert(sum.latencies_ns.end(), result.latencies_ns.begin(), result.latencies_ns.end());
  }
}

// Returns members of a JSON object.
std::string to_json(const std::vector<Peer>& peers, const std::vector<Compared>& faults,
                    const std::vector<std::string>& missing) {
  std::string json =
      "  \"guard_s\": " + std::to_string(static_cast<int>(kGuardUs * 1e-6)) + ",\n  \"peers\": [";
  const char* separator = "\n";
  for (const Peer& peer : peers) {
    for (const Play& play : peer.plays) {
      json += separator + to_json(peer, play);
      separator = ",\n";
    }
  }
  json += "\n  ],\n  \"times\": [";
  separator = "\n";
  for (const Compared& fault : faults) {
    if (fault.libdist.cells != 0)
      json += separator + times_json("libdist", fault.fault, own_us(fault)), separator = ",\n";
    for (const Peer& peer : peers) {
      const std::vector<const TrialResult*> results = results_of(peer, fault);
      if (results.empty()) continue;
      std::vector<double> us;
      for (const TrialResult* result : results) {
        for (const Witness& witness : result->witnesses) {
          if (witness.us >= 0 && witness.saw != Saw::kKilled) us.push_back(witness.us);
        }
      }
      json += separator + times_json(peer.offer.label, fault.fault, us), separator = ",\n";
    }
  }
  json += "\n  ],\n  \"peers_missing\": [";
  for (const std::string& each : missing) json += (&each == &missing.front() ? "" : ", ") + quoted(each);
  return json + "]";
}

}  // namespace

std::vector<Compared> compared(const std::vector<ClassResult>& results) {
  std::vector<Compared> faults;
  for (const Fault fault : kCompared) {
    faults.push_back({fault_name(fault), fault, true, {}});
    add_blocking(results, fault, faults.back().libdist);
  }
  return faults;
}

std::vector<Compared> compared(const std::vector<ProcessResult>& results) {
  std::vector<Compared> faults;
  for (const auto& [fault, like] : kComparedOfProcesses) {
    WorkerCell cell;
    cell.fault = fault;
    const bool goes_on = !cell.loses() && fault != WorkerFault::kNeverStarted;
    faults.push_back({worker_fault_name(fault), like, goes_on, {}});
    add_blocking(results, fault, faults.back().libdist);
  }
  return faults;
}

std::string compare(const ComparisonOptions& options, const std::vector<Compared>& faults) {
  bench::PeerList list = bench::read_peer_list(
      options.list, options.processes ? bench::PeerUse::kProcesses : bench::PeerUse::kFaults);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);  // some libraries abort on errors
  std::vector<Peer> peers;
  peers.reserve(list.offers.size());  // the trials point into it
  for (bench::PeerOffer& offer : list.offers) {
    peers.push_back({std::move(offer), "", {}});
    add_plays(options, faults, peers.back());
    if (peers.back().plays.empty()) peers.pop_back();
  }
  play_all(peers);
  end_orphans();
  print(table_of(peers, faults, options.processes));
  std::printf(
      "\nnamed: an error that says which rank; +: the same ranks' next collective works; "
      "-: not played, for a reason below\n");
  if (options.processes) {
    std::printf(
        "times: p50 / p99 from the cause; in late and never_started that is the deadline of who waits, where "
        "there is one\n");
  }
  for (const Peer& peer : peers) print_reasons(peer);
  for (const std::string& missing : list.missing) std::printf("  %s\n", missing.c_str());
  return to_json(peers, faults, list.missing);
}

}  // namespace faults
