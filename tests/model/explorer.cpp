// SPDX-License-Identifier: Apache-2.0
#include "tests/model/explorer.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace dist::model {
namespace {

Explorer* exploring = nullptr;

constexpr bool is_flush(int transition) { return transition >= kFibers; }
constexpr int fiber_of(int transition) { return transition % kFibers; }
constexpr uint16_t bit(int transition) { return static_cast<uint16_t>(1 << transition); }

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::kNone: return "begins";
    case Kind::kLoad: return "loads";
    case Kind::kStore: return "stores";
    case Kind::kBuffer: return "stores (buffered)";
    case Kind::kModify: return "modifies";
    case Kind::kRareBarrier: return "calls the rare barrier";
    case Kind::kBarrierEnd: return "comes back from the rare barrier";
    case Kind::kPark: return "parks on";
    case Kind::kUnpark: return "unparks";
    case Kind::kYield: return "yields";
    case Kind::kTimePasses: return "lets time pass";
    case Kind::kFlush: return "has its oldest store flushed:";
  }
  return "?";
}

}  // namespace

Explorer& Explorer::current() {
  if (exploring == nullptr) std::abort();
  return *exploring;
}

Explorer::Result Explorer::explore(const Scenario& scenario, const Options& options) {
  Explorer explorer(scenario, options);
  return explorer.run_all();
}

Explorer::Result Explorer::explore_to_the_point(const Scenario& scenario, const Options& options) {
  Result result = explore(scenario, options);
  if (result.fault.empty()) return result;
  for (int preemptions = 0; preemptions < 4; ++preemptions) {
    Options bounded = options;
    bounded.preemptions = preemptions;
    Result shorter = explore(scenario, bounded);
    if (!shorter.fault.empty()) return shorter;
  }
  return result;
}

Explorer::Result Explorer::run_all() {
  exploring = this;
  bool over = false;
  do {
    run_once();
    over = !fault_.empty() || !backtrack();
  } while (!over && result_.runs < options_.most_runs);
  if (!fault_.empty()) show_fault();
  result_.complete = over && result_.fault.empty();
  result_.states = visited_.size();
  exploring = nullptr;
  return result_;
}

// Repeats the last run and records its schedule as text.
void Explorer::show_fault() {
  result_.fault = std::move(fault_);
  fault_.clear();
  tracing_ = true;
  run_once();
  if (fault_ != result_.fault) result_.fault += " (but, when repeated: " + fault_ + ")";
  for (const std::string& line : trace_) result_.schedule += "  " + line + "\n";
}

void Explorer::run_once() {
  ++result_.runs;
  depth_ = 0;
  running_ = -1;
  trace_.clear();
  machine_.reset();
  machine_.weak = options_.weak;
  machine_.exact = options_.exact;
  machine_.fibers = 0;
  scenario_.make(*this);
  // Each fiber stops before its first line, as it does before every operation.
  for (int i = 0; i < machine_.fibers; ++i) {
    fibers_[static_cast<std::size_t>(i)].restart(fiber_main, this);
    what_[static_cast<std::size_t>(i)] = "";
  }
  while (next()) {
    Fiber& fiber = fibers_[static_cast<std::size_t>(running_)];
    main_.switch_to(fiber);
    if (!fault_.empty()) break;
    fiber.sweep();
  }
  result_.longest = std::max(result_.longest, static_cast<int>(depth_));
}

void Explorer::add_fiber(std::function<void()> body) {
  const auto fiber = static_cast<std::size_t>(machine_.fibers++);
  if (fiber >= kFibers) std::abort();
  bodies_[fiber] = std::move(body);
  machine_.threads[fiber].finished = false;
}

void Explorer::fiber_main(void* argument) {
  auto& self = *static_cast<Explorer*>(argument);
  const auto fiber = static_cast<std::size_t>(self.running_);
  self.bodies_[fiber]();
  self.machine_.threads[fiber].finished = true;
  self.fibers_[fiber].switch_to(self.main_);
}

void Explorer::step(Kind kind, Cell* cell, const char* what) {
  const auto fiber = static_cast<std::size_t>(running_);
  machine_.threads[fiber].next = {kind, cell};
  what_[fiber] = what;
  fibers_[fiber].switch_to(main_);
}

// Chooses the fiber that continues and stores it in running_. Flushes stores that are chosen before it.
// Returns false if the run has ended.
bool Explorer::next() {
  running_ = -1;
  for (;;) {
    if (depth_ == choices_.size() && !extend()) return false;
    Choice& choice = choices_[depth_++];
    const int fiber = fiber_of(choice.chosen);
    if (depth_ == choices_.size()) choice.operation = operation_of(choice.chosen);
    if (tracing_) {
      const char* what = is_flush(choice.chosen) ? "" : what_[static_cast<std::size_t>(fiber)];
      trace_.push_back(describe(fiber, choice.operation, what));
      if (is_flush(choice.chosen)) {
        note(machine_.threads[static_cast<std::size_t>(fiber)].buffer.front().value);
      }
    }
    if (!is_flush(choice.chosen)) {
      running_ = fiber;
      return true;
    }
    machine_.flush(fiber);
  }
}

Operation Explorer::operation_of(int transition) const {
  const int fiber = fiber_of(transition);
  if (is_flush(transition)) return {Kind::kFlush, machine_.oldest(fiber)};
  return machine_.threads[static_cast<std::size_t>(fiber)].next;
}

Explorer::Mask Explorer::enabled() const {
  Mask mask = 0;
  for (int i = 0; i < machine_.fibers; ++i) {
    if (machine_.can_run(i)) mask |= bit(i);
    if (machine_.can_flush(i)) mask |= bit(i + kFibers);
  }
  return mask;
}

// Returns the transitions that were asleep or tried in the previous state and still are: those that commute
// with the step just made.
Explorer::Mask Explorer::asleep_after(const Choice& before, Mask enabled) const {
  Mask asleep = 0;
  for (int t = 0; t < 2 * kFibers; ++t) {
    if ((before.asleep & enabled & bit(t)) == 0 || fiber_of(t) == fiber_of(before.chosen)) continue;
    if (independent(operation_of(t), before.operation)) asleep |= bit(t);
  }
  return asleep;
}

// Adds the choice of a new state. Returns false if the run ends here.
bool Explorer::extend() {
  Choice choice{};
  choice.enabled = enabled();
  choice.last = -1;
  if (choice.enabled == 0) {
    conclude();
    return false;
  }
  if (!choices_.empty()) {
    const Choice& before = choices_.back();
    choice.preemptions = before.preemptions;
    choice.last = is_flush(before.chosen) ? before.last : before.chosen;
    if (choice.last != before.last && before.last >= 0 && (before.enabled & bit(before.last)) != 0) {
      ++choice.preemptions;
    }
    if (options_.preemptions < 0) choice.asleep = asleep_after(before, choice.enabled);
  }
  uint64_t state = machine_.hash();
  for (int i = 0; i < machine_.fibers; ++i) {
    const auto fiber = static_cast<std::size_t>(i);
    state = mixed(state, machine_.threads[fiber].finished ? 0 : fibers_[fiber].hash());
  }
  if (options_.preemptions >= 0) {
    state = mixed(
        state, static_cast<uint64_t>(choice.preemptions) * kFibers + static_cast<uint64_t>(choice.last + 1));
  }
  choice.left = within_bound(choice) & static_cast<Mask>(~choice.asleep);
  const auto [found, added] = visited_.try_emplace(state, choice.asleep);
  if (!added) {
    // The state has been seen before. Only transitions that were asleep at every earlier visit and are not
    // asleep now remain to be run.
    choice.left &= found->second;
    choice.asleep &= found->second;
    found->second = choice.asleep;
  }
  choice.chosen = pick(choice);
  if (choice.chosen < 0) return false;
  choices_.push_back(choice);
  return true;
}

Explorer::Mask Explorer::within_bound(const Choice& choice) const {
  const bool spent = choice.preemptions == options_.preemptions;
  if (!spent || choice.last < 0 || (choice.enabled & bit(choice.last)) == 0) return choice.enabled;
  constexpr Mask kFlushes = static_cast<Mask>(((1 << kFibers) - 1) << kFibers);
  return choice.enabled & (kFlushes | bit(choice.last));
}

// Prefers the fiber that ran last, so that the first schedules are simple.
int Explorer::pick(const Choice& choice) {
  if (choice.left == 0) return -1;
  if (choice.last >= 0 && (choice.left & bit(choice.last)) != 0) return choice.last;
  return std::countr_zero(choice.left);
}

// Returns to the last state that has an alternative left. The operation of this alternative is determined
// when the run reaches it.
bool Explorer::backtrack() {
  while (!choices_.empty()) {
    Choice& choice = choices_.back();
    choice.asleep |= bit(choice.chosen);
    choice.left &= static_cast<Mask>(~bit(choice.chosen));
    choice.chosen = pick(choice);
    if (choice.chosen >= 0) return true;
    choices_.pop_back();
  }
  return false;
}

// No fiber can continue: either all have finished, or they wait for each other.
void Explorer::conclude() {
  std::string stuck;
  for (int i = 0; i < machine_.fibers; ++i) {
    const Machine::Thread& thread = machine_.threads[static_cast<std::size_t>(i)];
    if (thread.finished) continue;
    stuck += "; " + describe(i, thread.next, thread.parked != nullptr ? "(asleep)" : "(waiting)");
  }
  fault_ = stuck.empty() ? scenario_.end() : "nobody can go on" + stuck;
}

void Explorer::fault(std::string text) {
  fault_ = std::move(text);
  fibers_[static_cast<std::size_t>(running_)].switch_to(main_);
  std::abort();
}

std::string Explorer::describe(int fiber, const Operation& operation, const char* what) const {
  std::string text = "fiber " + std::to_string(fiber) + " ";
  text += name_of(operation.kind);
  if (operation.cell != nullptr) {
    text += " " + machine_.name_of(*operation.cell);
  }
  return *what == '\0' ? text : text + " " + what;
}

void Explorer::note(uint64_t value) {
  if (tracing_) trace_.back() += " " + std::to_string(value);
}

}  // namespace dist::model
