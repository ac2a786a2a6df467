// SPDX-License-Identifier: Apache-2.0
// dist_bench: compares libdist with hand-written alternatives and with the limits of the machine.
#include <getopt.h>

#include <cstdlib>
#include <exception>
#include <sstream>

#include "tests/bench/report.hpp"

namespace bench {
namespace {

constexpr char kHelp[] =
    "usage: dist_bench [options]\n"
    "Times libdist's collectives and compares them with std::barrier, OpenMP, other libraries and the "
    "machine's limits.\n"
    "\n"
    "  --json FILE        also write all figures to FILE\n"
    "  --quick            2 short rounds of at most 1 MiB, which only check the results\n"
    "  --filter TEXT      only rows whose name contains TEXT\n"
    "  --replicas LIST    numbers of replicas, such as 2,4,8\n"
    "  --rounds N         number of rounds (default 5); publish only figures of at least 5\n"
    "  --again N          maximum number of additional rounds if other programs disturb some (default 5)\n"
    "  --peers LIST       also time the programs in LIST, such as MPI; the build writes "
    "tests/bench/peers/peers.list\n"
    "  --bindings LIST    also time libdist from the languages in LIST; the build writes\n"
    "                     tests/bench/bindings/bindings.list\n"
    "  --list             print the names of the rows and exit\n"
    "  --help             print this text\n"
    "\n"
    "Exit status: 0 success; 1 a row is slower than its limit; 2 a result was wrong, or the run failed.\n";

enum Exit { kGood = 0, kMissedFloor = 1, kFailed = 2 };

struct Arguments {
  Settings settings;
  std::string json;
  bool list = false, help = false;
};

bool parse_number(const std::string& text, int lowest, int highest, int& out) {
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || value < lowest || value > highest) return false;
  out = static_cast<int>(value);
  return true;
}

bool parse_replicas(const std::string& text, std::vector<int>& out) {
  out.clear();
  std::istringstream list(text);
  for (std::string item; std::getline(list, item, ',');) {
    if (!parse_number(item, 1, INT32_MAX, out.emplace_back())) return false;
  }
  return !out.empty();
}

void make_quick(Settings& settings) {
  settings.rounds = 2;
  settings.again = 0;
  settings.block_us = 1e3;
  settings.most_bytes = size_t{1} << 20;
  settings.list_share = 64;
  settings.most_iterations = 8;
  settings.judged = false;
}

// Returns false, with a message on stderr, if the arguments are invalid.
bool parse(int argc, char** argv, Arguments& arguments) {
  static const option kOptions[] = {
      {"json", required_argument, nullptr, 'j'},
      {"quick", no_argument, nullptr, 'q'},
      {"filter", required_argument, nullptr, 'f'},
      {"replicas", required_argument, nullptr, 'r'},
      {"rounds", required_argument, nullptr, 'n'},
      {"again", required_argument, nullptr, 'a'},
      {"peers", required_argument, nullptr, 'p'},
      {"list", no_argument, nullptr, 'l'},
      {"bindings", required_argument, nullptr, 'b'},
      {"help", no_argument, nullptr, 'h'},
      {nullptr, 0, nullptr, 0},
  };
  Settings& settings = arguments.settings;
  int rounds = 0, again = -1;
  for (int key; (key = getopt_long(argc, argv, "", kOptions, nullptr)) != -1;) {
    bool good = true;
    switch (key) {
      case 'j': arguments.json = optarg; break;
      case 'q': make_quick(settings); break;
      case 'f': settings.filter = optarg; break;
      case 'r': good = parse_replicas(optarg, settings.replicas); break;
      case 'n': good = parse_number(optarg, 1, 1000, rounds); break;
      case 'a': good = parse_number(optarg, 0, 1000, again); break;
      case 'p': settings.peers = optarg; break;
      case 'b': settings.bindings = optarg; break;
      case 'l': arguments.list = true; break;
      case 'h': arguments.help = true; break;
      default: return false;  // getopt_long has printed the reason
    }
    if (!good) {
      std::fprintf(stderr, "dist_bench: '%s' is not a number in range\n", optarg);
      return false;
    }
  }
  if (rounds > 0) settings.rounds = rounds;
  if (again >= 0) settings.again = again;
  if (optind < argc) {
    std::fprintf(stderr, "dist_bench: '%s': no such argument\n", argv[optind]);
    return false;
  }
  return true;
}

int run(const Arguments& arguments) {
  const Settings& settings = arguments.settings;
  const std::vector<RowSpec> specs = all_rows(settings);
  if (specs.empty()) {
    std::fprintf(stderr, "dist_bench: no row's name holds '%s'; --list prints them\n",
                 settings.filter.c_str());
    return kFailed;
  }
  if (arguments.list) {
    for (const RowSpec& spec : specs) std::printf("%s\n", spec.name().c_str());
    return kGood;
  }
  print_head(settings);
  Runner runner(settings);
  std::vector<RowResult> rows;
  for (const RowSpec& spec : specs) {
    rows.push_back(runner.measure(spec));
    print_row(rows.back());
  }
  const Tally sum = tally(rows);
  print_tail(sum, settings, runner);
  if (!arguments.json.empty() && !write_json(arguments.json, settings, rows, runner)) return kFailed;
  return sum.missed == 0 ? kGood : kMissedFloor;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  bench::Arguments arguments;
  if (!bench::parse(argc, argv, arguments)) return bench::kFailed;
  if (arguments.help) {
    std::fputs(bench::kHelp, stdout);
    return bench::kGood;
  }
  try {
    return bench::run(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dist_bench: %s\n", error.what());
    return bench::kFailed;
  }
}
