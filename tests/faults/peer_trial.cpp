// SPDX-License-Identifier: Apache-2.0
// The ranks write to a folder (tests/bench/peers/fault.hpp). This code polls it until everything is known or
// the time limit is reached.
#include "tests/faults/peer_trial.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>

#include "tests/bench/harness.hpp"
#include "tests/bench/peer_process.hpp"

namespace faults {
namespace {

constexpr double kUnderWayUs = 120e6;  // before the cause, a compiler may have to run, or Python to start
constexpr double kNextUs = 3e6;
constexpr double kLookUs = 2e3;
constexpr double kEndUs = 2e6;

class Folder {
 public:
  Folder() {
    std::string name = std::filesystem::temp_directory_path() / "dist_faults-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error(name + " cannot be made");
    name_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(name_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

// Returns the state from /proc: 'Z' and 'X' are dead, '\0' means that there is no such process.
char state_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  std::getline(file, line);
  const size_t name_ends = line.rfind(')');
  return name_ends == std::string::npos || name_ends + 2 >= line.size() ? '\0' : line[name_ends + 2];
}
bool lives(pid_t process) {
  const char state = state_of(process);
  return state != '\0' && state != 'Z' && state != 'X';
}

struct Event {
  double us = 0;
  std::string words;
};
// Returns the events that a rank has written so far, by name.
std::map<std::string, Event> journal_of(const std::string& folder, int rank) {
  std::map<std::string, Event> events;
  std::ifstream file(folder + "/" + std::to_string(rank));
  for (std::string line; std::getline(file, line) && !file.eof();) {
    std::istringstream words(line);
    std::string name;
    Event event;
    words >> name >> event.us;
    std::getline(words >> std::ws, event.words);
    events[name] = event;
  }
  return events;
}

bool names(const std::string& message, int rank) {
  const std::regex pattern(
      "\\b(rank|replica|process|proc|device|worker|peer|task)s?\\W{0,3}" + std::to_string(rank) + "\\b",
      std::regex::icase);
  return std::regex_search(message, pattern);
}

// Files of shared memory. Processes that are killed leave them behind.
const std::string kSharedMemory = "/dev/shm/";
std::set<std::string> all_shared_memory() {
  std::set<std::string> files;
  std::error_code none;
  for (const auto& file : std::filesystem::directory_iterator(kSharedMemory, none)) files.insert(file.path());
  return files;
}
void add_shared_memory_of(const std::vector<pid_t>& processes, std::set<std::string>& files) {
  for (const pid_t process : processes) {
    std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
    for (std::string line; std::getline(maps, line);) {
      const size_t at = line.find(kSharedMemory);
      if (at != std::string::npos && !line.ends_with(" (deleted)")) files.insert(line.substr(at));
    }
  }
}

// Kills the processes, and returns how many are still alive afterwards.
int end_all(const std::vector<pid_t>& processes) {
  const auto any = [&] { return std::count_if(processes.begin(), processes.end(), lives); };
  for (const pid_t process : processes) {
    if (lives(process)) kill(process, SIGKILL);
  }
  for (const double begin = bench::now_us(); any() != 0 && bench::now_us() - begin < kEndUs;)
    bench::sleep_us(kLookUs);
  return static_cast<int>(any());
}

class Watch {
 public:
  Watch(const Trial& trial, const std::string& folder, const bench::PeerProcess& process, TrialResult& result)
      : trial_(trial), folder_(folder), process_(process), result_(result) {}

  // Returns false if the ranks did not get as far as the cause.
  bool all(double guard_us) {
    const auto passed = [](double begin, double limit_us) { return bench::now_us() - begin > limit_us; };
    for (const double begin = bench::now_us(); cause_us_ < 0; bench::sleep_us(kLookUs)) {
      // Check this before looking: a rank that ends afterwards may have written the event just before.
      const bool over = passed(begin, kUnderWayUs) || all_are_gone();
      look();
      if (cause_us_ < 0 && over) return false;
    }
    for (; !settled() && !passed(cause_us_, guard_us); bench::sleep_us(kLookUs)) look();
    for (const double begin = bench::now_us(); come_to_next() && !passed(begin, kNextUs);
         bench::sleep_us(kLookUs)) {
      look();
    }
    return true;
  }

  // Ends all known processes and removes their shared memory, except files that existed before. Returns the
  // number of processes that cannot be ended.
  int end(bench::PeerProcess& process, const std::set<std::string>& before) {
    const std::vector<pid_t> all = known();
    add_shared_memory_of(all, files_);
    process.put_down();
    const int left = end_all(all);
    for (const std::string& file : files_) {
      if (before.count(file) == 0) unlink(file.c_str());
    }
    return left;
  }

 private:
  std::vector<pid_t> known() const {
    std::vector<pid_t> all = process_.processes();
    for (const auto& [rank, process] : pids_) all.push_back(process);
    return all;
  }
  void look() {
    for (int rank = 0; rank < trial_.ranks; ++rank) {
      auto events = journal_of(folder_, rank);
      if (events.count("cause") != 0) cause_us_ = events["cause"].us;
      if (events.count("here") != 0 && pids_.count(rank) == 0) {
        pids_[rank] = std::atoi(events["here"].words.c_str());
        add_shared_memory_of({pids_[rank]}, files_);
      }
      // All shared memory exists now, and the fault, which may remove it, follows a little later. On a busy
      // machine it may already have happened, so most files were recorded when each rank appeared.
      if (events.count("inside") != 0 && !inside_) add_shared_memory_of(known(), files_), inside_ = true;
      for (Witness& witness : result_.witnesses) {
        if (witness.rank == rank) testify(witness, events);
      }
    }
  }

  void testify(Witness& witness, std::map<std::string, Event>& events) {
    if (events.count("next") != 0) {
      const std::string& said = events["next"].words;
      if (result_.next.empty() || result_.next == "right") result_.next = said;
      had_next_.insert(witness.rank);
    }
    if (witness.us >= 0 || cause_us_ < 0) return;
    if (events.count("back") != 0) {
      const Event& back = events["back"];
      witness.us = std::max(0.0, back.us - cause_us_);
      witness.message = back.words;
      const bool error = back.words.starts_with("error");
      const bool named = error && names(back.words, trial_.ranks - 1);
      witness.saw = named ? Saw::kNamed : error ? Saw::kError : Saw::kSilent;
    } else if (is_gone(witness.rank)) {
      witness.us = std::max(0.0, bench::now_us() - cause_us_);  // the cause may be a deadline in the future
      witness.saw = Saw::kKilled;
    }
  }

  bool is_gone(int rank) const {
    const auto found = pids_.find(rank);
    return !lives(found != pids_.end() ? found->second : process_.processes().front());
  }
  bool all_are_gone() const {
    return std::all_of(result_.witnesses.begin(), result_.witnesses.end(),
                       [this](const Witness& w) { return is_gone(w.rank); });
  }
  bool settled() const {
    return std::all_of(result_.witnesses.begin(), result_.witnesses.end(),
                       [](const Witness& w) { return w.us >= 0; });
  }
  // All ranks have returned, and some have not done the next collective yet.
  bool come_to_next() const {
    const bool back = std::all_of(result_.witnesses.begin(), result_.witnesses.end(),
                                  [](const Witness& w) { return w.us >= 0 && w.saw != Saw::kKilled; });
    return back && had_next_.size() < result_.witnesses.size() && !all_are_gone();
  }

  const Trial& trial_;
  const std::string& folder_;
  const bench::PeerProcess& process_;
  TrialResult& result_;
  std::map<int, pid_t> pids_;
  std::set<int> had_next_;
  std::set<std::string> files_;
  bool inside_ = false;
  double cause_us_ = -1;
};

bench::peers::Words command_of(const Trial& trial, const Folder& folder) {
  bench::peers::Words command = bench::peer_command(*trial.peer, trial.ranks, true);
  command.insert(command.begin(), {"env", "TMPDIR=" + folder.name()});
  return command;
}

void play(const Trial& trial, double guard_us, TrialResult& result) {
  const Folder folder;
  const std::set<std::string> before = all_shared_memory();
  bench::PeerProcess process(command_of(trial, folder));
  const bench::peers::Words answer =
      process.ask(bench::peers::join({"fault", trial.fault, trial.collective, folder.name()}));
  if (answer[0] != "@begun") process.lose("does not begin");
  for (size_t i = 1; i < answer.size(); ++i) {
    result.witnesses.emplace_back().rank = std::atoi(answer[i].c_str());
  }
  Watch watch(trial, folder.name(), process, result);
  const bool came = watch.all(guard_us);
  result.words = process.last_words();
  result.leftovers = watch.end(process, before);
  if (!came) throw bench::PeerLost("it did not come to the fault (" + result.words + ")");
  for (const Witness& witness : result.witnesses) result.saw = std::max(result.saw, witness.saw);
}

}  // namespace

const char* saw_name(Saw saw) {
  static const char* const saws[] = {"named", "error", "silent", "killed", "hang"};
  static_assert(std::size(saws) == kSaws);
  return saws[static_cast<int>(saw)];
}

std::vector<std::string> ask_peer(const std::vector<Trial>& trials, std::string& name) {
  std::vector<std::string> reasons;
  try {
    const Folder folder;
    bench::PeerProcess process(command_of(trials.front(), folder));
    name = process.name();
    for (const Trial& trial : trials) {
      const bench::peers::Words answer =
          process.ask(bench::peers::join({"can", trial.fault, trial.collective}));
      reasons.push_back(answer[0] == "@yes" ? "" : answer.size() > 1 ? answer[1] : answer[0]);
    }
  } catch (const std::runtime_error& error) {
    reasons.assign(trials.size(), error.what());
  }
  return reasons;
}

TrialResult try_peer(const Trial& trial, double guard_us) {
  TrialResult result;
  try {
    play(trial, guard_us, result);
  } catch (const std::runtime_error& error) {
    result.why_not = error.what();
  }
  return result;
}

}  // namespace faults
