// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <utility>

namespace golden {
namespace {

constexpr std::pair<Verdict, const char*> kColumns[] = {
    {Verdict::kSame, "same"},           {Verdict::kOnPurpose, "on purpose"},
    {Verdict::kDifferent, "different"}, {Verdict::kInapplicable, "not applicable"},
    {Verdict::kNotBuilt, "not built"},
};

class Report {
 public:
  Report(const ReportOptions& options, std::FILE* out)
      : options_(options),
        out_(out),
        session_(options.list, options.own, options.selection, options.longest, options.grpc) {}

  int run() {
    std::vector<std::vector<Area>> directories;  // all are read before any case runs
    std::size_t cases = 0;
    for (const std::string& directory : options_.directories) {
      for (const Area& area : directories.emplace_back(session_.load(directory))) cases += area.cases.size();
    }
    if (cases == 0) throw Malformed{"no case is selected"};
    for (std::size_t i = 0; i < directories.size(); ++i) play(options_.directories[i], directories[i]);
    const std::vector<std::string> stale = session_.stale();
    for (const std::string& fault : stale) std::fprintf(out_, "%s\n", fault.c_str());
    if (malformed_) return 2;
    return different_ || !stale.empty() ? 1 : 0;
  }

 private:
  void play(const std::string& directory, const std::vector<Area>& areas) {
    std::fprintf(out_, "%s\n%-22s %7s", directory.c_str(), "area", "cases");
    for (const auto& [verdict, name] : kColumns) std::fprintf(out_, " %16s", name);
    std::fprintf(out_, "\n");
    Tally all;
    std::string differences;
    for (const Area& area : areas) {
      std::size_t shown = 0;
      const Tally tally =
          session_.play(area, [&](const Case& one, Verdict verdict, const Judgement& judgement) {
            malformed_ = malformed_ || judgement.malformed;
            if (verdict != Verdict::kDifferent || ++shown > options_.shown) return;
            for (const Difference& fault : judgement.faults) differences += describe(area, one, fault);
            for (const Difference& one_part : judgement.differences) {
              differences += describe(area, one, one_part);
            }
          });
      if (shown > options_.shown) {
        differences +=
            "... and " + std::to_string(shown - options_.shown) + " more cases of " + area.name + "\n";
      }
      print(area.name, tally);
      for (std::size_t i = 0; i < all.counts.size(); ++i) all.counts[i] += tally.counts[i];
    }
    print("all", all);
    std::fprintf(out_, "\n%s", differences.c_str());
    different_ = different_ || all.of(Verdict::kDifferent) != 0;
  }

  void print(const std::string& name, const Tally& tally) {
    std::fprintf(out_, "%-22s %7zu", name.c_str(), tally.total());
    for (const auto& [verdict, heading] : kColumns) {
      const std::size_t count = tally.of(verdict);
      if (count == 0) {
        std::fprintf(out_, " %16s", "-");
        continue;
      }
      const double share = 100.0 * static_cast<double>(count) / static_cast<double>(tally.total());
      std::fprintf(out_, " %7zu %6.2f %%", count, share);
    }
    std::fprintf(out_, "\n");
    std::fflush(out_);
  }

  const ReportOptions& options_;
  std::FILE* out_;
  Session session_;
  bool different_ = false;
  bool malformed_ = false;
};

}  // namespace

std::string describe(const Area& area, const Case& one, const Difference& difference) {
  return area.name + "/" + one.id + ": " + difference.where + "\n    expected  " + difference.expected +
         "\n    came      " + difference.came + "\n";
}

int report(const ReportOptions& options, std::FILE* out) {
  try {
    return Report(options, out).run();
  } catch (const Malformed& error) {
    std::fprintf(out, "golden: %s\n", error.what.c_str());
    return 2;
  }
}

}  // namespace golden
