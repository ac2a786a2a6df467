// SPDX-License-Identifier: Apache-2.0
#include "capi/tools/info_options.hpp"

#include <getopt.h>

#include "core/base/text.hpp"

namespace dist::info {

// At most 80 columns.
const char kHelp[] =
    "Usage: dist-info [--check] [--json]\n"
    "Prints what libdist finds on this machine: its version and features, the\n"
    "modules that it can load and why it cannot load others, CPUs, NUMA domains,\n"
    "limits, and the cluster that the environment variables specify.\n"
    "\n"
    "Options\n"
    "      --check          Check whether a job can run in this environment, and\n"
    "                       print one line for each check\n"
    "      --json           Print one JSON object instead of lines\n"
    "  -h, --help           Print this help\n"
    "      --version        Print the version\n"
    "\n"
    "Checks, in this order\n"
    "  cluster              TF_CONFIG, DIST_RENDEZVOUS, MASTER_ADDR or the Slurm\n"
    "                       step is valid, and every task has its own address\n"
    "  settings             libdist accepts the variables DIST_..., and can load the\n"
    "                       module of the transport\n"
    "  names                The host names of the cluster resolve within 10 s\n"
    "  port                 This process can listen on its address\n"
    "  tls                  The certificate is valid, is for the host of this\n"
    "                       process, and belongs to the key and the authority\n"
    "  security             Addresses other than loopback have TLS, or a secret and\n"
    "                       DIST_PLAINTEXT=1\n"
    "  cpus                 Each replica has a CPU\n"
    "  limits               Descriptors and threads suffice\n"
    "  clock                The clock is set, and reading it is fast\n"
    "  trial                Two processes of dist-info meet on a free port of\n"
    "                       127.0.0.1 and sum a tensor, within 30 s\n"
    "\n"
    "A line of --check begins with ok, note or problem. A note does not keep a job\n"
    "from running. dist-info connects to no other machine, except to name servers,\n"
    "and never prints the job's secret. If the settings are invalid, the checks that\n"
    "need them are left out.\n"
    "\n"
    "Exit status: 0 on success; 1 if --check found a problem; 2 if the command line\n"
    "is wrong; 125 if dist-info itself failed.\n";

namespace {

constexpr int kCheck = 256;
constexpr int kJson = 257;
constexpr int kVersion = 258;
const option kOptions[] = {{"check", no_argument, nullptr, kCheck},
                           {"json", no_argument, nullptr, kJson},
                           {"help", no_argument, nullptr, 'h'},
                           {"version", no_argument, nullptr, kVersion},
                           {nullptr, 0, nullptr, 0}};

std::string shown(const char* text) { return "\"" + std::string(Shown(text).c_str()) + "\""; }

Options nonsense(std::string why) {
  Options refused;
  refused.asked = Asked::kNonsense;
  refused.error = std::move(why);
  return refused;
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  opterr = 0;
  optind = 0;  // starts over even if getopt was used before
  for (int key; (key = getopt_long(argc, argv, "+:h", kOptions, nullptr)) != -1;) {
    switch (key) {
      case kCheck: options.check = true; break;
      case kJson: options.json = true; break;
      case 'h':
      case kVersion: options.asked = key == 'h' ? Asked::kHelp : Asked::kVersion; return options;
      default:
        if (optopt >= kCheck) return nonsense(shown(argv[optind - 1]) + " takes no value");
        // For a short option getopt reports the letter; for a word, only the position after it.
        if (optopt != 0)
          return nonsense("-" + std::string(1, static_cast<char>(optopt)) + " is not an option");
        return nonsense(shown(argv[optind - 1]) + " is not an option");
    }
  }
  if (optind < argc) return nonsense(shown(argv[optind]) + " is not expected: dist-info takes only options");
  return options;
}

}  // namespace dist::info
