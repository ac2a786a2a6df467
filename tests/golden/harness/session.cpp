// SPDX-License-Identifier: Apache-2.0
#include "session.hpp"

#include <fnmatch.h>

#include <numeric>

#include "catalogue.hpp"

namespace golden {
namespace {

bool selects(const std::string& glob, const std::string& text) {
  return glob.empty() || fnmatch(glob.c_str(), text.c_str(), 0) == 0;
}

}  // namespace

std::size_t Tally::total() const noexcept {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

Session::Session(const std::string& list, std::string own, Selection selection, std::chrono::seconds longest,
                 bool grpc)
    : list_(DifferenceList::read(list)),
      own_(std::move(own)),
      selection_(std::move(selection)),
      longest_(longest),
      grpc_(grpc) {}

std::vector<Area> Session::load(const std::string& directory) const {
  std::vector<Area> areas = load_directory(directory);
  for (Area& area : areas) {
    std::erase_if(area.cases, [&](const Case& one) { return !selects(selection_.id, one.id); });
  }
  std::erase_if(areas, [&](const Area& area) {
    return !selects(selection_.area, area.name) || (area.cases.empty() && !selection_.id.empty());
  });
  return areas;
}

Tally Session::play(const Area& area, const Judged& judged) {
  Tally tally;
  const auto count = [&](const Case& one, Verdict verdict, const Judgement& judgement) {
    ++tally.of(verdict);
    judged(one, verdict, judgement);
  };
  const Replayed* const known = find_area(area.name);
  if (known == nullptr) {
    Judgement judgement;
    judgement.faults.push_back({"outcome", "outcome", "", "this program does not know this area"});
    for (const Case& one : area.cases) count(one, Verdict::kDifferent, judgement);
    return tally;
  }
  played_.insert(area.name);
  std::vector<const Case*> cases;
  for (const Case& one : area.cases) {
    if (!grpc_ && known->is_by_grpc(one.id)) {
      list_.pass_over(area.name, one);
      count(one, Verdict::kNotBuilt, {});
    } else {
      cases.push_back(&one);
    }
  }
  run_cases(*known, cases, longest_, [&](std::size_t index, const Answer& answer) {
    Judgement judgement = judge(*cases[index], answer);
    const Verdict verdict = list_.explain(area.name, *cases[index], judgement);
    count(*cases[index], verdict, judgement);
  });
  return tally;
}

std::vector<std::string> Session::stale() {
  std::vector<std::string> faults;
  if (!selection_.id.empty()) return faults;
  const std::set<std::string> played = played_;
  for (const std::string& area : played) {
    if (!list_.stale(area).empty()) play_own(area);
    for (std::string& fault : list_.stale(area)) faults.push_back(std::move(fault));
  }
  return faults;
}

// Plays the cases of the project's own copy that match rows which have not explained anything yet.
void Session::play_own(const std::string& name) {
  for (Area& area : load_directory(own_)) {
    if (area.name != name) continue;
    std::erase_if(area.cases, [&](const Case& one) { return !list_.in_question(name, one); });
    play(area, [](const Case&, Verdict, const Judgement&) {});
  }
}

}  // namespace golden
