// SPDX-License-Identifier: Apache-2.0
// dist-launch: starts the workers of a job and waits until they have ended. README.md documents it.
#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "capi/tools/job.hpp"
#include "capi/tools/launch_options.hpp"
#include "capi/tools/launch_plan.hpp"
#include "capi/tools/local_setup.hpp"
#include "capi/tools/process.hpp"

namespace dist::launch {
namespace {

constexpr int kUsage = 2;
// Linux's MAX_ARG_STRLEN: the maximum size of a variable, including its name and NUL.
constexpr std::size_t kMaxVariableBytes = 131072;

int complain(int status, const std::string& why) {
  std::fprintf(stderr, "dist-launch: %s\n", why.c_str());
  if (status == kUsage) std::fputs("Try 'dist-launch --help' for more information.\n", stderr);
  return status;
}

int print(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
    return complain(kLauncherFailed, std::string("cannot write to standard output: ") + std::strerror(errno));
  }
  return 0;
}

// Opens missing standard descriptors, so that no file opened later becomes standard input, output or error.
bool open_missing() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd) return false;
  }
  return true;
}

// From here on, signals are delivered through the descriptor, except those that were ignored when dist-launch
// started.
bool take_over_signals(Inherited* inherited, int* out) {
  sigset_t taken;
  sigemptyset(&taken);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGUSR1, SIGUSR2}) {
    struct sigaction action;
    if (sigaction(signal, nullptr, &action) != 0) return false;
    if (action.sa_handler != SIG_IGN) sigaddset(&taken, signal);
  }
  for (const int signal : {SIGCHLD, SIGCONT}) {
    struct sigaction usual = {};
    usual.sa_handler = SIG_DFL;  // if it were ignored, the ends of tasks could not be read
    if (sigaction(signal, &usual, nullptr) != 0) return false;
    sigaddset(&taken, signal);
  }
  struct sigaction ignored = {};
  ignored.sa_handler = SIG_IGN;
  if (sigaction(SIGPIPE, &ignored, &inherited->pipe_action) != 0) return false;
  if (sigprocmask(SIG_BLOCK, &taken, &inherited->mask) != 0) return false;
  *out = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
  return *out >= 0;
}

// Returns 0, or the exit status and sets *why.
int prepare(JobSetup* setup, std::string* why) {
  const Options& options = setup->options;
  const char* const secret = getenv("DIST_JOB_SECRET");
  const bool has_secret = secret != nullptr && *secret != '\0';
  if (!has_secret && !options.hosts.empty()) {
    *why = "DIST_JOB_SECRET is not set. With --hosts, set it to the same secret on all machines.";
    return kUsage;
  }
  if (has_secret) {
    setup->secret = secret;
  } else if (!make_secret(&setup->secret)) {
    *why = std::string("cannot get random bits: ") + std::strerror(errno);
    return kLauncherFailed;
  }
  if (const int status = find_program(options.program, &setup->program, why); status != 0) return status;
  if (options.hosts.empty() && !hold_free_ports(options.workers + options.ps, &setup->ports)) {
    *why = std::string("cannot find free ports of 127.0.0.1: ") + std::strerror(errno);
    return kLauncherFailed;
  }
  std::vector<uint16_t> ports;
  for (const HeldPort& each : setup->ports) ports.push_back(each.port);
  setup->tasks = plan_tasks(options, ports);
  const std::size_t size = sizeof "TF_CONFIG=" + tf_config(setup->tasks, setup->tasks.size() - 1).size();
  if (size > kMaxVariableBytes) {
    *why = "TF_CONFIG would have " + std::to_string(size) + " bytes, but a variable can have at most " +
           std::to_string(kMaxVariableBytes) + ". Use shorter names or fewer tasks in --hosts.";
    return kUsage;
  }
  return 0;
}

int run(int argc, char** argv) {
  if (!open_missing()) return kLauncherFailed;
  Parsed parsed = parse_options(argc, argv);
  switch (parsed.asked) {
    case Asked::kHelp: return print(kHelp);
    case Asked::kVersion: return print("dist-launch (libdist) " DIST_LAUNCH_VERSION "\n");
    case Asked::kNonsense: return complain(kUsage, parsed.error);
    case Asked::kRun: break;
  }
  JobSetup setup;
  setup.options = std::move(parsed.options);
  std::string why;
  if (const int status = prepare(&setup, &why); status != 0) return complain(status, why);
  if (!take_over_signals(&setup.inherited, &setup.signals)) {
    return complain(kLauncherFailed, std::string("cannot handle signals: ") + std::strerror(errno));
  }
  return Job(setup).run();
}

}  // namespace
}  // namespace dist::launch

int main(int argc, char** argv) {
  try {
    return dist::launch::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dist-launch: %s\n", error.what());
    return dist::launch::kLauncherFailed;
  }
}
