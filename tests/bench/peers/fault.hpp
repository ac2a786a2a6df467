// SPDX-License-Identifier: Apache-2.0
// The fault matrix, as far as a library can express it: the last rank makes one mistake in one collective,
// and every rank records the results of its calls.
//
// It supports the faults of a single process, or the faults of processes for peers whose ranks are processes.
//
//   faults: can FAULT COLLECTIVE           peer: @yes  or  @no WHY
//   faults: fault FAULT COLLECTIVE FOLDER  peer: @begun RANK...  the ranks that will write their observations
//
// A rank appends lines to FOLDER/RANK, so that they survive it: "EVENT MICROSECONDS WORDS", in monotonic
// time. "here PID" comes first. "inside" precedes the call under test. The guilty rank writes "cause"; if the
// cause is a deadline, the waiting rank writes it in advance. "back" follows the call, with "right", "wrong"
// (no error, but an unintended result) or "error MESSAGE". "next" reports likewise on another, correct
// collective of all remaining ranks.
#pragma once

#include <optional>
#include <string>

namespace bench::peers {

class Library;
class Seat;

enum class Collective { kAllReduce, kReduce, kBroadcast, kAllGather, kBarrier };

enum class Fault {
  kEarlyReturn,    // its function returns
  kErrorReturned,  // its function returns an error
  kSkipped,
  kExtra,
  kSwappedOrder,
  kWrongDtype,
  kWrongCount,
  kWrongOp,
  kWrongRoot,
  kStalled,       // never arrives
  kPastDeadline,  // arrives after the others' deadline
  kThreadGone,    // the thread or the process ends
  // Only for processes.
  kOtherCollective,
  kLate,          // like kPastDeadline, but the deadline is the cause
  kExited,        // exits normally, without leaving
  kStopped,       // the process is stopped until it is ended
  kNeverStarted,  // its peers start, and this rank does not
};

// One rank's part of a collective.
struct Exchange {
  Collective collective;
  bool integers;  // i32, otherwise f32
  bool maximum;   // maximum, otherwise sum
  size_t count;   // elements per rank
  int root;
  int tag;  // tag of this call, if the library has tags
  const void* in;
  void* out;
};

struct FaultRequest {
  Fault fault;
  Collective collective;
  std::string folder;  // "" = only asks whether the fault can be played
};
// Returns nothing if the line is another command or contains an unknown word.
std::optional<FaultRequest> parse_fault(const std::string& line);

// Plays one rank's part. Rank 0 answers first. Returns false if this rank has left because its function
// returned. Throws if it has to leave with an error.
bool play_fault(Seat& seat, Library& library, const FaultRequest& request);

}  // namespace bench::peers
