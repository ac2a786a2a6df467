// SPDX-License-Identifier: Apache-2.0
// A turn of such a peer is one command. Its process sleeps before and after it.
#include "tests/bench/external.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace bench {
namespace {

constexpr double kFallAsleepUs = 2e6;
constexpr int kTrialIterations = 4, kTrialBatches = 3;
// On a busy machine, each batch costs a spinning peer a time slice. libdist sleeps instead.
constexpr int kMostBatches = 50;
constexpr double kTooSlow = 4;  // times the group's fastest in the trial; slower forms are left out

bool find_group(const std::string& word, PeerGroup& group) {
  const auto is_it = [&](PeerGroup each) { return word == group_word(group = each); };
  return std::any_of(kPeerGroups.begin(), kPeerGroups.end(), is_it) ||
         std::any_of(kBindings.begin(), kBindings.end(), is_it);
}

class ExternalSide final : public Side {
 public:
  ExternalSide(PeerProcess& process, peers::Request request, int most_batches)
      : process_(process), request_(std::move(request)), most_batches_(most_batches) {}
  std::string name() const override {
    return process_.name() + (request_.form.empty() ? "" : ", " + request_.form);
  }

  void block(const Plan& plan, Samples& samples) override {
    request_.plan = plan;
    request_.plan.batches = std::min(plan.batches, most_batches_);
    if (!measure(samples)) process_.lose("has changed its mind");
  }

  // Returns false if the peer does not support the request.
  bool measure(Samples& samples) {
    const peers::Words answer = process_.ask(peers::to_line(request_));
    if (answer[0] == "@no") return false;
    if (answer[0] != "@times" || answer.size() < 2) {
      throw std::runtime_error(name() + ": " + (answer.size() > 1 ? answer[1] : answer[0]));
    }
    for (size_t i = 1; i < answer.size(); ++i) samples.push_back(std::strtod(answer[i].c_str(), nullptr));
    if (!wait_until_quiet(process_.processes(), kFallAsleepUs))
      process_.lose("does not sleep after its turn");
    return true;
  }

 private:
  PeerProcess& process_;
  peers::Request request_;
  int most_batches_;
};

}  // namespace

const char* group_word(PeerGroup group) {
  switch (group) {
    case PeerGroup::kMpi: return "mpi";
    case PeerGroup::kOneCcl: return "oneccl";
    case PeerGroup::kGloo: return "gloo";
    case PeerGroup::kJax: return "jax";
    case PeerGroup::kTensorFlow: return "tensorflow";
    case PeerGroup::kVllm: return "vllm";
    case PeerGroup::kDeepSpeed: return "deepspeed";
    case PeerGroup::kGo: return "go";
    case PeerGroup::kJava: return "java";
    case PeerGroup::kPython: return "python";
  }
  return "?";
}

Peers::Peers(const std::string& list) {
  PeerList known = read_peer_list(list, PeerUse::kBench);
  skipped_ = std::move(known.missing);
  for (PeerOffer& offer : known.offers) {
    PeerGroup group;
    if (find_group(offer.group, group)) offers_.push_back({group, std::move(offer), nullptr});
  }
}

void Peers::start(int replicas) {
  if (replicas == replicas_) return;
  replicas_ = replicas;
  names_.clear();
  for (Offer& offer : offers_) {
    offer.process.reset();
    try {
      offer.process = std::make_unique<PeerProcess>(peer_command(offer.start, replicas, false));
      names_.push_back(offer.process->name());
    } catch (const PeerLost& lost) {
      skipped_.push_back(offer.start.label + ": " + lost.what());
    }
  }
}

std::vector<std::unique_ptr<Side>> Peers::sides(PeerGroup group, const peers::Request& request,
                                                bool on_host_threads) {
  return sides_up_to(kTooSlow, group, request, on_host_threads);
}

std::vector<std::unique_ptr<Side>> Peers::all_sides(PeerGroup group, const peers::Request& request) {
  return sides_up_to(std::numeric_limits<double>::infinity(), group, request, false);
}

std::vector<std::unique_ptr<Side>> Peers::sides_up_to(double too_slow, PeerGroup group,
                                                      const peers::Request& request, bool on_host_threads) {
  const bool libdist = std::find(kBindings.begin(), kBindings.end(), group) != kBindings.end();
  const int most_batches = libdist ? std::numeric_limits<int>::max() : kMostBatches;
  std::vector<std::pair<double, std::unique_ptr<ExternalSide>>> tried;
  double fastest = std::numeric_limits<double>::infinity();
  for (Offer& offer : offers_) {
    if (offer.group != group || !offer.process) continue;
    for (const std::string& form : offer.process->forms()) {
      if (libdist && form.empty() == on_host_threads) continue;
      peers::Request trial = request;
      trial.form = form;
      trial.plan.iterations = std::min(kTrialIterations, request.plan.iterations);
      trial.plan.batches = kTrialBatches;
      auto side = std::make_unique<ExternalSide>(*offer.process, trial, most_batches);
      Samples samples;
      if (!side->measure(samples)) continue;
      const double us = *std::min_element(samples.begin(), samples.end());
      fastest = std::min(fastest, us);
      tried.emplace_back(us, std::move(side));
    }
  }
  std::vector<std::unique_ptr<Side>> sides;
  for (auto& [us, side] : tried) {
    if (libdist || us <= too_slow * fastest) sides.push_back(std::move(side));
  }
  return sides;
}

void Peers::forget_lost() {
  for (Offer& offer : offers_) {
    if (!offer.process || offer.process->lost().empty()) continue;
    skipped_.push_back(offer.start.label + ": " + offer.process->lost());
    offer.process.reset();
  }
}

double Peers::cpu_us() const {
  double sum = 0;
  for (const Offer& offer : offers_) {
    if (offer.process) sum += offer.process->cpu_us();
  }
  return sum;
}

}  // namespace bench
