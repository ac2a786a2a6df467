// SPDX-License-Identifier: Apache-2.0
// Explorer: runs a scenario repeatedly until it has seen every interleaving of its fibers.
//
// The search is depth first: it reruns the scenario up to the last choice and takes another alternative
// there. Two techniques make it finish. First, a state that has been seen is not entered again. A state
// consists of the machine's memory and the fibers' stacks and registers, because nothing else affects the
// future. Second, if two next operations commute, only one order is run (sleep sets, stored with the states:
// Godefroid, 1996).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tests/model/fiber.hpp"
#include "tests/model/machine.hpp"

namespace dist::model {

class Explorer {
 public:
  struct Options {
    bool weak = true;      // store buffers
    bool exact = true;     // check races of plain data on all paths to every state, not only on the paths
                           // that are run
    int preemptions = -1;  // maximum number of preemptions of fibers that could continue; -1 = no limit
    uint64_t most_runs = 20'000'000;
  };
  struct Result {
    bool complete = false;  // everything was explored, and no fault was found
    std::string fault;      // "" = none
    std::string schedule;   // the schedule that leads to the fault
    uint64_t states = 0;
    uint64_t runs = 0;
    int longest = 0;
  };

  // A scenario: make() sets up a run and adds its fibers. After all have finished, end() returns "" or what
  // is wrong.
  struct Scenario {
    std::function<void(Explorer&)> make;
    std::function<std::string()> end;
  };

  static Result explore(const Scenario& scenario, const Options& options);
  // The same, but a fault is searched for again with the smallest number of preemptions that shows it.
  static Result explore_to_the_point(const Scenario& scenario, const Options& options);

  // The explorer that is running. Scenarios and atomics use it.
  static Explorer& current();

  void add_fiber(std::function<void()> body);
  Machine& machine() { return machine_; }
  int running() const { return running_; }

  // Blocks the running fiber until the explorer lets it perform this operation.
  void step(Kind kind, Cell* cell, const char* what);
  // Records the result of an operation, for the schedule of a fault.
  void note(uint64_t value);
  // Ends the run with a fault of the protocol.
  [[noreturn]] void fault(std::string text);

 private:
  using Mask = uint16_t;  // transitions: fiber f continues, or (f + kFibers) its oldest store is flushed
  struct Choice {
    Mask enabled;
    Mask asleep;  // known to lead to nothing new, or already tried
    Mask left;    // still to try
    int chosen;
    Operation operation;  // of the chosen transition
    int last;             // the fiber that ran before
    int preemptions;
  };

  Explorer(const Scenario& scenario, const Options& options) : scenario_(scenario), options_(options) {}
  Result run_all();
  void show_fault();
  void run_once();
  bool backtrack();
  bool next();
  bool extend();
  static int pick(const Choice& choice);
  Mask asleep_after(const Choice& before, Mask enabled) const;
  Operation operation_of(int transition) const;
  Mask enabled() const;
  Mask within_bound(const Choice& choice) const;
  void conclude();
  static void fiber_main(void* argument);
  std::string describe(int fiber, const Operation& operation, const char* what) const;

  const Scenario& scenario_;
  const Options options_;
  Machine machine_;
  Fiber main_;
  std::array<Fiber, kFibers> fibers_;
  std::array<std::function<void()>, kFibers> bodies_;
  std::array<const char*, kFibers> what_{};
  int running_ = -1;
  std::size_t depth_ = 0;
  std::vector<Choice> choices_;
  std::unordered_map<uint64_t, Mask> visited_;  // with the transitions that were asleep at every visit
  std::string fault_;
  std::vector<std::string> trace_;
  bool tracing_ = false;
  Result result_;
};

}  // namespace dist::model
