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
  kEarlyReturn,    // its function is over
  kErrorReturned,  // over, by an error of its own
  kSkipped,
  kExtra,
  kSwappedOrder,
  kWrongDtype,
  kWrongCount,
  kWrongOp,
  kWrongRoot,
  kStalled,       // never comes
  kPastDeadline,  // comes after the others' deadline
  kThreadGone,    // the thread, or the process
  // Of processes alone.
  kOtherCollective,
  kLate,          // as kPastDeadline, but the deadline is the cause
  kExited,        // without a word, but well
  kStopped,       // the process, until it is ended
  kNeverStarted,  // its peers start, and it does not
};

// One rank's side of a collective.
struct Exchange {
  Collective collective;
  bool integers;  // i32; else f32
  bool maximum;   // else the sum
  size_t count;   // elements of one rank
  int root;
  int tag;  // of this call, for a library that knows tags
  const void* in;
  void* out;
};

struct FaultRequest {
  Fault fault;
  Collective collective;
  std::string folder;  // "": it only asks whether this can be played
};
// Nothing where the line is another command, or has a word that this side does not know.
std::optional<FaultRequest> parse_fault(const std::string& line);

// One rank's part; rank 0 answers first. False: this rank has left, as one does whose function returned.
// Throws where it is to leave by an error.
bool play_fault(Seat& seat, Library& library, const FaultRequest& request);

}  // namespace bench::peers
