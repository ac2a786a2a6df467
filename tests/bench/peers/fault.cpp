// SPDX-License-Identifier: Apache-2.0
// All ranks call the collective under test and a barrier, then the collective again, then a different one.
// The guilty rank waits until its peers are inside the second call.
#include "tests/bench/peers/fault.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <vector>

#include "tests/bench/peers/team.hpp"

namespace bench::peers {
namespace {

constexpr size_t kCount = 256;
constexpr double kPeersAreInsideUs = 20e3;  // a peer that announced the call is inside by then
constexpr double kLookUs = 1e3;

template <class T>
struct Word {
  const char* text;
  T value;
};
constexpr std::array<Word<Collective>, 5> kCollectives{{{"all_reduce", Collective::kAllReduce},
                                                        {"reduce_to_root", Collective::kReduce},
                                                        {"broadcast", Collective::kBroadcast},
                                                        {"all_gather", Collective::kAllGather},
                                                        {"barrier", Collective::kBarrier}}};
constexpr std::array<Word<Fault>, 23> kFaults{{{"early_return", Fault::kEarlyReturn},
                                               {"error_returned", Fault::kErrorReturned},
                                               {"skipped", Fault::kSkipped},
                                               {"extra", Fault::kExtra},
                                               {"swapped_order", Fault::kSwappedOrder},
                                               {"wrong_dtype", Fault::kWrongDtype},
                                               {"wrong_count", Fault::kWrongCount},
                                               {"wrong_op", Fault::kWrongOp},
                                               {"wrong_root", Fault::kWrongRoot},
                                               {"stalled", Fault::kStalled},
                                               {"past_deadline", Fault::kPastDeadline},
                                               {"thread_gone", Fault::kThreadGone},
                                               // The names in the matrix over processes.
                                               {"other_collective", Fault::kOtherCollective},
                                               {"other_op", Fault::kWrongOp},
                                               {"other_dtype", Fault::kWrongDtype},
                                               {"other_shape", Fault::kWrongCount},
                                               {"other_root", Fault::kWrongRoot},
                                               {"other_order", Fault::kSwappedOrder},
                                               {"late", Fault::kLate},
                                               {"killed", Fault::kThreadGone},
                                               {"exited", Fault::kExited},
                                               {"stopped", Fault::kStopped},
                                               {"never_started", Fault::kNeverStarted}}};

template <class T, size_t N>
bool find(const std::array<Word<T>, N>& words, const std::string& text, T& value) {
  const auto found = std::find_if(words.begin(), words.end(), [&](const auto& w) { return text == w.text; });
  if (found != words.end()) value = found->value;
  return found != words.end();
}

// The events of a rank. A line is written by one write(), so it is complete or missing.
class Journal {
 public:
  Journal(std::string folder, int rank) : folder_(std::move(folder)) {
    fd_ = open(path(rank).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd_ < 0) throw std::runtime_error(path(rank) + " cannot be written");
    write("here", std::to_string(getpid()));
  }
  ~Journal() { close(fd_); }
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // `later_us` is for an event whose time is known in advance.
  void write(const char* event, std::string words = "", double later_us = 0) const {
    std::replace(words.begin(), words.end(), '\n', ' ');
    std::string line = event;
    line += ' ' + std::to_string(now_us() + later_us) + ' ' + words + '\n';
    [[maybe_unused]] const ssize_t sent = ::write(fd_, line.data(), line.size());
  }
  bool has(int rank, const std::string& event) const {
    std::ifstream file(path(rank));
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with(event)) return true;
    }
    return false;
  }
  bool has_error(int rank) const {
    std::ifstream file(path(rank));
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("back") && line.find(" error ") != std::string::npos) return true;
    }
    return false;
  }

 private:
  std::string path(int rank) const { return folder_ + "/" + std::to_string(rank); }
  const std::string folder_;
  int fd_ = -1;
};

class Actor {
 public:
  Actor(const Seat& seat, Library& library, const FaultRequest& request)
      : library_(library),
        request_(request),
        rank_(seat.rank()),
        ranks_(seat.ranks()),
        guilty_(seat.ranks() - 1),
        journal_(request.folder, seat.rank()) {}

  bool play();

 private:
  enum Tag { kBefore = 1, kStep, kAfter, kExtra, kNext };

  // Returns whether the result is the one that is expected if all ranks agree.
  bool exchange(Collective collective, Tag tag, bool wrong = false);
  bool step(bool wrong = false) { return exchange(request_.collective, kStep, wrong); }
  bool after() { return exchange(other(), kAfter); }
  // A collective other than the one under test. Without tags, only its name distinguishes the calls.
  Collective other() const {
    return request_.collective == Collective::kBarrier ? Collective::kAllReduce : Collective::kBarrier;
  }
  template <class Calls>
  void record(const char* event, Calls calls);
  void await(int rank, const char* event) const {
    while (!journal_.has(rank, event)) sleep_us(kLookUs);
  }
  void await_all_others(const char* event) const {
    for (int r = 0; r < guilty_; ++r) await(r, event);
  }
  bool is(Fault fault) const { return request_.fault == fault; }
  bool by_deadline() const { return is(Fault::kLate) || is(Fault::kNeverStarted); }
  bool do_well();
  bool misbehave();
  void next(bool all);

  Library& library_;
  const FaultRequest& request_;
  const int rank_, ranks_, guilty_;
  const Journal journal_;
};

bool Actor::exchange(Collective collective, Tag tag, bool wrong) {
  const auto wrong_by = [&](Fault fault) { return wrong && is(fault); };
  if (wrong_by(Fault::kOtherCollective)) collective = other();
  const auto ranks = static_cast<size_t>(ranks_);
  std::vector<float> in(kCount + 1, static_cast<float>(rank_ + 1));
  std::vector<float> out((kCount + 1) * ranks);
  Exchange mine{
      collective, wrong_by(Fault::kWrongDtype), wrong_by(Fault::kWrongOp), kCount, 0, tag, in.data(),
      out.data()};
  if (wrong_by(Fault::kWrongCount)) ++mine.count;
  // With this root, the other ranks depend on the guilty one.
  if (collective == Collective::kBroadcast) mine.root = guilty_;
  if (wrong_by(Fault::kWrongRoot)) mine.root = (mine.root + 1) % ranks_;
  library_.exchange(mine);

  const auto all_are = [&](size_t begin, float value) {
    const auto first = out.begin() + static_cast<std::ptrdiff_t>(begin);
    return std::all_of(first, first + kCount, [=](float x) { return x == value; });
  };
  const float sum = static_cast<float>(ranks_ * (ranks_ + 1)) / 2;
  switch (collective) {
    case Collective::kAllReduce: return all_are(0, sum);
    case Collective::kReduce: return rank_ != mine.root || all_are(0, sum);
    case Collective::kBroadcast: return all_are(0, static_cast<float>(mine.root + 1));
    case Collective::kBarrier: return true;
    case Collective::kAllGather: break;
  }
  bool right = true;
  for (size_t r = 0; r < ranks; ++r) right = right && all_are(r * kCount, static_cast<float>(r + 1));
  return right;
}

template <class Calls>
void Actor::record(const char* event, Calls calls) {
  std::string words;
  try {
    words = calls() ? "right" : "wrong";
  } catch (const std::exception& error) {
    words = std::string("error ") + error.what();
  }
  journal_.write(event, words);
}

bool Actor::play() {
  if (!exchange(request_.collective, kBefore)) throw std::runtime_error("wrong result without a fault");
  exchange(Collective::kBarrier, kBefore);
  if (rank_ == guilty_) {
    if (!misbehave()) return false;
  } else {
    journal_.write("inside");
    if (by_deadline()) journal_.write("cause", "", library_.deadline_us());
    record("back", [this] { return do_well(); });
  }
  const bool gone = is(Fault::kThreadGone) || is(Fault::kEarlyReturn) || is(Fault::kExited) ||
                    is(Fault::kStopped) || is(Fault::kNeverStarted);
  next(!gone);
  return true;
}

bool Actor::do_well() {
  if (is(Fault::kNeverStarted)) {
    library_.start_anew();
    return true;
  }
  const bool right = step();
  return after() && right;
}

bool Actor::misbehave() {
  await_all_others("inside");
  if (!by_deadline()) {
    sleep_us(kPeersAreInsideUs);
    journal_.write("cause");
  }
  switch (request_.fault) {
    case Fault::kEarlyReturn: return false;
    case Fault::kErrorReturned:
      if (!library_.say_failed()) throw std::runtime_error("no row 7");
      journal_.write("back", "error of its own");
      break;
    case Fault::kThreadGone: library_.vanish(); break;
    case Fault::kExited: _exit(0);
    case Fault::kStopped:
      for (;;) raise(SIGSTOP);
    case Fault::kNeverStarted: await_all_others("back"); return false;
    case Fault::kSkipped: record("back", [this] { return after(); }); break;
    case Fault::kExtra:
      record("back", [this] { return exchange(other(), kExtra) && step() && after(); });
      break;
    case Fault::kSwappedOrder: record("back", [this] { return after() && step(); }); break;
    case Fault::kStalled:
    case Fault::kPastDeadline:
    case Fault::kLate:
      await_all_others("back");
      if (is(Fault::kStalled)) {
        journal_.write("back", "right");
      } else {
        record("back", [this] { return step() && after(); });
      }
      break;
    default:
      record("back", [this] {
        const bool right = step(true);
        return after() && right;
      });
  }
  return true;
}

// If the library supports it, the other ranks continue without the guilty one.
void Actor::next(bool all) {
  // A rank that returned an error continues at once, while its library may still be reporting it.
  bool failed = rank_ == guilty_ && is(Fault::kErrorReturned);
  for (int r = 0; !failed && r < (all ? ranks_ : guilty_); ++r) {
    await(r, "back");
    failed = journal_.has_error(r);
  }
  record("next", [&] {
    if (!library_.mend(failed) && !all) throw std::runtime_error("a rank has left");
    float one = 1, sum = 0;
    library_.exchange({Collective::kAllReduce, false, false, 1, 0, kNext, &one, &sum});
    return sum == static_cast<float>(all ? ranks_ : guilty_);
  });
}

// Returns why the fault cannot be played, or null.
const char* reason(const Library& library, const FaultRequest& request) {
  const bool needs_deadline = request.fault == Fault::kPastDeadline || request.fault == Fault::kLate;
  if (needs_deadline && library.deadline_us() == 0) return "it has no deadline";
  if (request.fault == Fault::kNeverStarted && !library.starts_alone())
    return "its launcher starts all ranks or none";
  const bool other_root = request.collective == Collective::kBroadcast || request.fault == Fault::kWrongRoot;
  if (other_root && !library.has_any_root()) return "it takes root 0 alone";
  return nullptr;
}

}  // namespace

std::optional<FaultRequest> parse_fault(const std::string& line) {
  const Words words = split(line);
  FaultRequest request;
  const bool plays = words.size() == 4 && words[0] == "fault";
  const bool asks = words.size() == 3 && words[0] == "can";
  if ((!plays && !asks) || !find(kFaults, words[1], request.fault) ||
      !find(kCollectives, words[2], request.collective)) {
    return std::nullopt;
  }
  if (plays) request.folder = words[3];
  return request;
}

bool play_fault(Seat& seat, Library& library, const FaultRequest& request) {
  const char* const why_not = reason(library, request);
  if (why_not != nullptr || request.folder.empty()) {
    if (seat.leads()) seat.say(why_not != nullptr ? Words{"@no", why_not} : Words{"@yes"});
    return true;
  }
  if (seat.leads()) {
    Words answer{"@begun"};
    for (int rank = 0; rank + 1 < seat.ranks(); ++rank) answer.push_back(std::to_string(rank));
    seat.say(answer);
  }
  return Actor(seat, library, request).play();
}

}  // namespace bench::peers
