// SPDX-License-Identifier: Apache-2.0
// The command line: getopt_long() splits it into options, and this file has their names, ranges and help.
#include "capi/tools/launch_options.hpp"

#include <arpa/inet.h>
#include <dist/types.h>
#include <getopt.h>
#include <strings.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>
#include <system_error>

namespace dist::launch {

// At most 80 columns.
const char kHelp[] =
    "Usage: dist-launch -n W [OPTION...] [--] PROGRAM [ARGUMENT...]\n"
    "Starts PROGRAM as W workers of one job on this machine and waits until they have\n"
    "ended. TF_CONFIG tells each task its own role and the addresses of the others.\n"
    "\n"
    "The job\n"
    "  -n, --workers=W      Number of workers\n"
    "      --replicas=R     Set DIST_REPLICAS to R: the number of replicas of each\n"
    "                       worker, which the program can read\n"
    "      --chief          The first of the W tasks is the chief, not a worker\n"
    "      --ps=P           Also start P parameter servers (ps) and a chief. See\n"
    "                       \"With --ps\" below\n"
    "\n"
    "When a task fails\n"
    "      --restarts=N     Restart failed tasks, up to N times in the whole job\n"
    "                       (default 0). The first restart waits 0.1 s; the delay\n"
    "                       doubles each time, up to 5 s\n"
    "      --restart=WHAT   task: restart only the failed task, with the same\n"
    "                       TF_CONFIG (default). job: end all tasks and restart all\n"
    "                       of them\n"
    "      --grace=SECONDS  How long a task may take to end after SIGTERM before it\n"
    "                       gets SIGKILL (default 10)\n"
    "\n"
    "With --ps\n"
    "  The chief, which schedules the work, decides how the job ends. When the chief\n"
    "  succeeds, the other tasks have the grace period to end by themselves. Those\n"
    "  that remain then get SIGTERM and one more grace period. When the chief fails,\n"
    "  all tasks are ended, and restarted together if a restart is left.\n"
    "  A worker that fails is restarted by itself. If no restart is left, the job\n"
    "  continues without it. A ps that fails is not restarted by itself, because its\n"
    "  variables are lost: calls of the chief fail, and the chief continues or fails.\n"
    "  With --restart=job, the failure of any task restarts all tasks together. Each\n"
    "  of these counts as one of the N restarts. A task that has succeeded is only\n"
    "  restarted together with all others.\n"
    "\n"
    "Several machines: run dist-launch on each machine, with the same LIST\n"
    "      --hosts=LIST     HOST:TASKS,HOST:TASKS,... For example, a:2,b:2,c starts\n"
    "                       two tasks each on a and b, one on c. IPv6 addresses go in\n"
    "                       brackets: [fd00::1]:2. Not with --ps\n"
    "      --index=I        Position of this machine in LIST, from 0\n"
    "      --port=FIRST     Port of the first task on each machine (default 29500).\n"
    "                       Further tasks use the ports that follow\n"
    "\n"
    "Output\n"
    "      --no-prefix      Let the tasks write to the standard output and error of\n"
    "                       dist-launch directly. By default, each line starts with\n"
    "                       the name of its task: [worker 0]\n"
    "  -h, --help           Print this help\n"
    "      --version        Print the version\n"
    "\n"
    "Environment of the tasks\n"
    "  TF_CONFIG            The cluster and the task\n"
    "  DIST_RENDEZVOUS, DIST_RANK, DIST_SIZE\n"
    "                       The address of the first task, the number of this task,\n"
    "                       and how many tasks there are, for programs that create\n"
    "                       a resolver for a rendezvous. Other programs use\n"
    "                       TF_CONFIG. Not with --ps\n"
    "  DIST_JOB_SECRET      256 random bits in hexadecimal, or the value that is\n"
    "                       already set. With --hosts, set it to the same value on\n"
    "                       all machines\n"
    "  DIST_RESTART=K       Set in a restarted task: this is its K-th restart\n"
    "Standard input is /dev/null.\n"
    "\n"
    "On one machine, the tasks get free ports of 127.0.0.1. dist-launch holds them\n"
    "until the job ends, so several jobs can run at the same time. A task can listen\n"
    "on its port if it sets SO_REUSEADDR, as libdist and most servers do.\n"
    "\n"
    "Signals: SIGINT, SIGTERM and SIGHUP end the job. dist-launch forwards them to\n"
    "all tasks, and kills those that remain after the grace period, or at a second\n"
    "SIGINT. SIGUSR1, SIGUSR2 and Ctrl-Z are forwarded too. When a task ends,\n"
    "dist-launch kills the processes that it leaves in its process group.\n"
    "\n"
    "Exit status: 0 if all tasks succeeded; otherwise the status of the first task\n"
    "that failed, or with --ps that of the chief; 128+S if signal S ended that task\n"
    "or dist-launch; 2 if the command line is wrong; 125 if dist-launch itself\n"
    "failed; 126 if PROGRAM cannot be executed; 127 if PROGRAM was not found.\n";

namespace {

// Options without a short form.
enum : int {
  kReplicas = 256,
  kChief,
  kPs,
  kRestarts,
  kRestart,
  kGrace,
  kHosts,
  kIndex,
  kPort,
  kNoPrefix,
  kVersion
};

const option kOptions[] = {{"workers", required_argument, nullptr, 'n'},
                           {"replicas", required_argument, nullptr, kReplicas},
                           {"chief", no_argument, nullptr, kChief},
                           {"ps", required_argument, nullptr, kPs},
                           {"restarts", required_argument, nullptr, kRestarts},
                           {"restart", required_argument, nullptr, kRestart},
                           {"grace", required_argument, nullptr, kGrace},
                           {"hosts", required_argument, nullptr, kHosts},
                           {"index", required_argument, nullptr, kIndex},
                           {"port", required_argument, nullptr, kPort},
                           {"no-prefix", no_argument, nullptr, kNoPrefix},
                           {"help", no_argument, nullptr, 'h'},
                           {"version", no_argument, nullptr, kVersion},
                           {nullptr, 0, nullptr, 0}};

// Quotes a text from the command line for a message: on one line, and shortened.
std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 60;
  std::string safe = "\"";
  for (const char c : text.substr(0, kMost))
    safe += static_cast<unsigned char>(c) < ' ' || c == 127 ? '?' : c;
  return safe + (text.size() > kMost ? "...\"" : "\"");
}

// "--grace", or "-n" for a short option.
std::string name_of(int key) {
  for (const option* one = kOptions; one->name != nullptr; ++one) {
    if (one->val == key && key >= kReplicas) return std::string("--") + one->name;
  }
  return std::string("-") + static_cast<char>(key);
}

class Parser {
 public:
  Parsed parse(int argc, char** argv);

 private:
  void take(int key, const char* text);
  void take_restart(std::string_view text);
  void take_grace(std::string_view text);
  void take_hosts(std::string_view text);
  bool take_host(std::string_view text);
  void check_whole();
  void check_hosts();
  void check_local();

  // Returns whether the text is a valid number; `what` begins the error message.
  bool take_number(const std::string& what, std::string_view text, int32_t least, int32_t most, int32_t* out);
  // Only the first error is reported.
  void refuse(std::string why) {
    if (parsed_.asked == Asked::kNonsense) return;
    parsed_.asked = Asked::kNonsense;
    parsed_.error = std::move(why);
  }
  bool is_given(int key) const { return std::find(given_.begin(), given_.end(), key) != given_.end(); }

  Parsed parsed_;
  Options& options_ = parsed_.options;
  std::vector<int> given_;
};

bool Parser::take_number(const std::string& what, std::string_view text, int32_t least, int32_t most,
                         int32_t* out) {
  int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc() && end == text.data() + text.size() && text.front() != '-';
  if (is_number && number >= least && number <= most) {
    *out = number;
    return true;
  }
  refuse(what + " is " + shown(text) + ", but must be a whole number from " + std::to_string(least) + " to " +
         std::to_string(most));
  return false;
}

void Parser::take_restart(std::string_view text) {
  if (text != "task" && text != "job") refuse("--restart is " + shown(text) + ", but must be task or job");
  options_.restart = text == "job" ? RestartWhat::kJob : RestartWhat::kTask;
}

void Parser::take_grace(std::string_view text) {
  double seconds = 0;
  // from_chars() would also accept "inf", "nan" and a sign.
  const bool begins = !text.empty() && text.front() >= '0' && text.front() <= '9';
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), seconds, std::chars_format::fixed);
  if (!begins || error != std::errc() || end != text.data() + text.size() || seconds > kMaxGraceSeconds) {
    refuse("--grace is " + shown(text) + ", but must be seconds from 0 to " +
           std::to_string(kMaxGraceSeconds) + ", such as 0.5");
    return;
  }
  options_.grace_ns = static_cast<int64_t>(seconds * 1e9);
}

bool is_name(std::string_view host) {
  return !host.empty() && std::all_of(host.begin(), host.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
  });
}

// An address in brackets, possibly with an interface: [fe80::1%eth0].
bool is_bracketed_ipv6(std::string_view host) {
  std::string inside(host.substr(1, host.size() - 2));
  const std::size_t zone = inside.find('%');
  if (zone != std::string::npos) {
    if (!is_name(std::string_view(inside).substr(zone + 1))) return false;
    inside.resize(zone);
  }
  in6_addr address;
  return inet_pton(AF_INET6, inside.c_str(), &address) == 1;
}

bool Parser::take_host(std::string_view text) {
  const std::string where = "in --hosts, " + shown(text);
  std::string_view name = text;
  std::size_t colon = text.find(':');
  if (!text.empty() && text.front() == '[') {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return refuse(where + " has no closing bracket"), false;
    name = text.substr(0, end + 1);
    if (!is_bracketed_ipv6(name)) return refuse(where + " has no IPv6 address between its brackets"), false;
    colon = end + 1 == text.size() ? std::string_view::npos : end + 1;
    if (colon != std::string_view::npos && text[colon] != ':') {
      return refuse(where + " has text other than :TASKS after its brackets"), false;
    }
  } else {
    name = text.substr(0, colon);
    if (std::count(text.begin(), text.end(), ':') > 1) {
      return refuse(where + " has more than one colon. Put an IPv6 address in brackets, as in [fd00::1]:2."),
             false;
    }
    if (!is_name(name)) return refuse(where + " is not HOST or HOST:TASKS"), false;
  }
  if (name.size() + sizeof ":65535" > DIST_MAX_ADDRESS_BYTES)
    return refuse(where + " is too long for a host name"), false;
  Host host{std::string(name)};
  if (colon != std::string_view::npos &&
      !take_number("in --hosts, the number of tasks on " + host.name, text.substr(colon + 1), 1,
                   kMaxLocalTasks, &host.num_tasks)) {
    return false;
  }
  options_.hosts.push_back(std::move(host));
  return true;
}

void Parser::take_hosts(std::string_view text) {
  options_.hosts.clear();
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (!take_host(text.substr(begin, end - begin))) return;
    begin = end + 1;
  }
}

void Parser::take(int key, const char* text) {
  switch (key) {
    case 'n': take_number("-n", text, 1, DIST_MAX_CLUSTER_TASKS, &options_.workers); break;
    case kReplicas: take_number("--replicas", text, 1, INT32_MAX, &options_.replicas); break;
    case kChief: options_.chief = true; break;
    // Leaves room for a worker and the chief.
    case kPs: take_number("--ps", text, 1, kMaxLocalTasks - 2, &options_.ps); break;
    case kRestarts: take_number("--restarts", text, 0, kMaxRestarts, &options_.restarts); break;
    case kRestart: take_restart(text); break;
    case kGrace: take_grace(text); break;
    case kHosts: take_hosts(text); break;
    case kIndex: take_number("--index", text, 0, DIST_MAX_CLUSTER_TASKS, &options_.index); break;
    case kPort: take_number("--port", text, 1, 65535, &options_.first_port); break;
    case kNoPrefix: options_.prefix = false; break;
    default: break;
  }
}

void Parser::check_hosts() {
  int64_t sum = 0;
  int32_t most = 0;
  std::vector<std::string> names;
  for (const Host& host : options_.hosts) {
    sum += host.num_tasks;
    most = std::max(most, host.num_tasks);
    names.push_back(host.name);
  }
  const auto before = [](const std::string& a, const std::string& b) {
    return strcasecmp(a.c_str(), b.c_str()) < 0;
  };
  std::sort(names.begin(), names.end(), before);
  const auto twice = std::adjacent_find(names.begin(), names.end(),
                                        [&](const auto& a, const auto& b) { return !before(a, b); });
  if (twice != names.end()) {
    return refuse("--hosts names " + shown(*twice) +
                  " twice, so their tasks would have the same ports. List it once, with "
                  "all its tasks.");
  }
  if (sum > DIST_MAX_CLUSTER_TASKS) {
    return refuse("--hosts has " + std::to_string(sum) + " tasks, but a cluster can have at most " +
                  std::to_string(DIST_MAX_CLUSTER_TASKS));
  }
  if (is_given('n') && options_.workers != sum) {
    return refuse("-n is " + std::to_string(options_.workers) + ", but --hosts has " + std::to_string(sum) +
                  " tasks. Leave out -n, or make them equal.");
  }
  options_.workers = static_cast<int32_t>(sum);
  if (!is_given(kIndex)) return refuse("--hosts needs --index, the position of this machine in the list");
  if (static_cast<std::size_t>(options_.index) >= options_.hosts.size()) {
    return refuse("--index is " + std::to_string(options_.index) + ", but must be 0 to " +
                  std::to_string(options_.hosts.size() - 1) + " for this --hosts list");
  }
  if (options_.first_port + most - 1 > 65535) {
    return refuse("--port is " + std::to_string(options_.first_port) + ", so the last of " +
                  std::to_string(most) + " tasks on a machine would have a port above 65535");
  }
  if (options_.ps > 0) {
    refuse(
        "--ps works on one machine only: with --hosts, the other machines could not learn that the chief has "
        "ended");
  }
}

void Parser::check_local() {
  const bool has_ps = options_.ps > 0;
  const std::string ps = std::to_string(options_.ps);
  if (!is_given('n') && has_ps) {
    return refuse(
        "--ps needs --workers, the number of workers beside the ps and the chief, as in: "
        "dist-launch --ps " +
        ps + " --workers 2 -- PROGRAM");
  }
  if (!is_given('n'))
    return refuse("-n is missing. Pass the number of workers, as in: dist-launch -n 2 -- PROGRAM");
  if (has_ps && options_.chief) {
    return refuse("--chief cannot be used with --ps, which already adds a chief. Leave out --chief.");
  }
  if (options_.workers + (has_ps ? options_.ps + 1 : 0) > kMaxLocalTasks) {
    return refuse(std::to_string(options_.workers) + " workers" +
                  (has_ps ? ", " + ps + " ps and the chief" : "") + " are more than " +
                  std::to_string(kMaxLocalTasks) + " tasks on one machine");
  }
  if (!has_ps) return;
  // From here on, the job is treated like one with --chief and one more worker than given by -n.
  options_.chief = true;
  ++options_.workers;
}

void Parser::check_whole() {
  if (is_given(kHosts)) {
    check_hosts();
  } else if (is_given(kIndex) || is_given(kPort)) {
    refuse(std::string(is_given(kIndex) ? "--index" : "--port") +
           " needs --hosts. Without it, the tasks get free ports of this machine.");
  } else {
    check_local();
  }
  if (*options_.program == nullptr) refuse("the program is missing, as in: dist-launch -n 2 -- PROGRAM");
}

Parsed Parser::parse(int argc, char** argv) {
  opterr = 0;
  optind = 0;  // starts over even if getopt was used before
  for (int key; (key = getopt_long(argc, argv, "+:n:h", kOptions, nullptr)) != -1;) {
    if (key == 'h' || key == kVersion) {
      parsed_.asked = key == 'h' ? Asked::kHelp : Asked::kVersion;
      return parsed_;
    }
    if (key == ':') {
      refuse(name_of(optopt) + " needs a value");
    } else if (key == '?') {
      if (optopt >= kReplicas) refuse(name_of(optopt) + " takes no value");
      // For a short option getopt reports the letter; for a word, only the position after it.
      if (optopt != 0) refuse("-" + std::string(1, static_cast<char>(optopt)) + " is not an option");
      refuse(shown(argv[optind - 1]) + " is not an option, or the start of several");
    } else {
      given_.push_back(key);
      take(key, optarg);
    }
    if (parsed_.asked == Asked::kNonsense) return parsed_;
  }
  options_.program = argv + optind;
  check_whole();
  return parsed_;
}

}  // namespace

Parsed parse_options(int argc, char** argv) { return Parser().parse(argc, argv); }

}  // namespace dist::launch
