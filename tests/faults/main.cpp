// SPDX-License-Identifier: Apache-2.0
// dist_faults: the fault matrix. With the name of a fault, it runs a cmocka group on a random sample of the
// fault's cells. With --report, it prints a table for all cells of all faults.
#include <algorithm>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "tests/faults/matrix.hpp"
#include "tests/faults/process_matrix.hpp"
#include "tests/faults/process_worker.hpp"
#include "tests/faults/report.hpp"
#include "tests/faults/worker_matrix.hpp"

extern "C" {
#include <cmocka.h>
}

namespace {

using namespace faults;

Options the_options;
Fault the_fault;

std::vector<ClassResult> the_results;

int play_group(void**) {
  the_results = play_all(the_fault, the_options);
  return 0;
}

// A test of the group: the cells of one form.
void form_is_survived(void** state) {
  for (const ClassResult& result : the_results) {
    if (result.form != *static_cast<const Form*>(*state)) continue;
    for (const std::string& finding : result.findings) print_message("# %s\n", finding.c_str());
    assert_int_equal(result.wrong, 0);
    assert_int_equal(result.leftovers, 0);
    return;
  }
  fail_msg("no cell was played");
}

int test(const char* fault) {
  static Form forms[kForms] = {Form::kBlocking, Form::kAsynchronous, Form::kPolled, Form::kPlanned};
  for (int i = 0; i < kFaults; ++i) {
    the_fault = static_cast<Fault>(i);
    if (std::strcmp(fault, fault_name(the_fault)) != 0) continue;
    CMUnitTest tests[kForms] = {};  // empty entries are not run
    std::size_t n = 0;
    const std::vector<Cell> cells = cells_of(the_fault, the_options.whole, the_options.seed);
    for (Form& form : forms) {
      const bool any = std::any_of(cells.begin(), cells.end(), [&](const Cell& c) { return c.form == form; });
      if (any) tests[n++] = {form_name(form), form_is_survived, nullptr, nullptr, &form};
    }
    std::printf("# DIST_TEST_SEED=%llu\n", static_cast<unsigned long long>(the_options.seed));
    return cmocka_run_group_tests_name(fault, tests, play_group, nullptr) == 0 ? 0 : 1;
  }
  std::fprintf(stderr, "%s is no fault\n", fault);
  return 2;
}

std::vector<WorkerResult> the_worker_results;
WorkerFault the_worker_fault;

int play_group_of_workers(void**) {
  the_worker_results = play_all(the_worker_fault, the_options);
  return 0;
}

void workers_survive(void** state) {
  for (const WorkerResult& result : the_worker_results) {
    if (result.when != *static_cast<const When*>(*state)) continue;
    for (const std::string& finding : result.findings) print_message("# %s\n", finding.c_str());
    assert_int_equal(result.wrong, 0);
    assert_int_equal(result.leftovers, 0);
    return;
  }
  fail_msg("no cell was played");
}

int test_workers(const char* fault) {
  static When whens[kWhens] = {When::kFirst, When::kMiddle, When::kLast};
  for (int i = 0; i < kWorkerFaults; ++i) {
    the_worker_fault = static_cast<WorkerFault>(i);
    if (std::strcmp(fault, worker_fault_name(the_worker_fault)) != 0) continue;
    CMUnitTest tests[kWhens] = {};  // empty entries are not run
    std::size_t n = 0;
    const std::vector<WorkerCell> cells =
        worker_cells_of(the_worker_fault, the_options.whole, the_options.seed);
    for (When& when : whens) {
      const bool any =
          std::any_of(cells.begin(), cells.end(), [&](const WorkerCell& c) { return c.when == when; });
      if (any) tests[n++] = {when_name(when), workers_survive, nullptr, nullptr, &when};
    }
    std::printf("# DIST_TEST_SEED=%llu\n", static_cast<unsigned long long>(the_options.seed));
    return cmocka_run_group_tests_name(fault, tests, play_group_of_workers, nullptr) == 0 ? 0 : 1;
  }
  std::fprintf(stderr, "%s is no fault of workers\n", fault);
  return 2;
}

std::vector<ProcessResult> the_process_results;

int play_group_of_processes(void**) {
  the_process_results = play_all_processes(the_worker_fault, the_options);
  return 0;
}

void processes_survive(void** state) {
  for (const ProcessResult& result : the_process_results) {
    if (result.form != *static_cast<const Form*>(*state)) continue;
    for (const std::string& finding : result.findings) print_message("# %s\n", finding.c_str());
    assert_int_equal(result.wrong, 0);
    return;
  }
  fail_msg("no cell was played");
}

int test_processes(const char* fault) {
  static Form forms[] = {Form::kBlocking, Form::kAsynchronous, Form::kPlanned};
  for (int i = 0; i < kProcessFaults; ++i) {
    the_worker_fault = static_cast<WorkerFault>(i);
    if (std::strcmp(fault, worker_fault_name(the_worker_fault)) != 0) continue;
    CMUnitTest tests[std::size(forms)] = {};
    for (std::size_t n = 0; n < std::size(forms); ++n)
      tests[n] = {form_name(forms[n]), processes_survive, nullptr, nullptr, &forms[n]};
    std::printf("# DIST_TEST_SEED=%llu\n", static_cast<unsigned long long>(the_options.seed));
    return cmocka_run_group_tests_name(fault, tests, play_group_of_processes, nullptr) == 0 ? 0 : 1;
  }
  std::fprintf(stderr, "%s is no fault of processes\n", fault);
  return 2;
}

int usage() {
  std::fprintf(
      stderr,
      "usage: dist_faults [--workers [--processes]] FAULT\n"
      "       dist_faults --report [options]\n"
      "Injects faults into collectives and checks the report that every replica gets.\n"
      "\n"
      "  FAULT             run a random part of the cases of one fault as cmocka tests\n"
      "  --report          run all cases and print a table\n"
      "  --workers         replicas of several workers, which have faults of their own\n"
      "  --processes       with --workers: each worker is a process, connected by gRPC\n"
      "  --namespaces      with --processes: each process has a network namespace, and the links between "
      "them fail,\n"
      "                    lose packets and are slow (needs root)\n"
      "  --hold            with --processes: also fail if a call returns later than promised\n"
      "  --quick           run only a random part of the cases, and of other libraries only those of "
      "all_reduce\n"
      "  --filter TEXT     only cases whose name contains TEXT, such as \"all_gather, planned\"\n"
      "  --seed NUMBER     selects the random part\n"
      "  --json FILE       also write the table to FILE\n"
      "  --peers LIST      also run the cases with the other libraries in LIST and print both tables;\n"
      "                    ./dev faults --peers makes the list\n"
      "\n"
      "Exit status: 0 success; 1 a case failed; 2 the arguments are wrong, or the run failed.\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--worker") == 0)
    return play_as_process(kPageFd, static_cast<int>(std::strtol(argv[2], nullptr, 10)));
  const char* seed = std::getenv("DIST_TEST_SEED");
  the_options.seed = seed != nullptr ? std::strtoull(seed, nullptr, 10) : 1;
  const char* fault = nullptr;
  bool reports = false;
  bool quick = false;
  bool workers = false, processes = false, namespaces = false, hold = false;
  ReportOptions to;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const bool more = i + 1 < argc;
    if (argument == "--report") {
      reports = true;
    } else if (argument == "--quick") {
      quick = true;
    } else if (argument == "--workers") {
      workers = true;
    } else if (argument == "--processes") {
      processes = true;
    } else if (argument == "--namespaces") {
      namespaces = true;
    } else if (argument == "--hold") {
      hold = true;
    } else if (argument == "--json" && more) {
      to.json = argv[++i], reports = true;
    } else if (argument == "--peers" && more) {
      to.peers = argv[++i], reports = true;
    } else if (argument == "--filter" && more) {
      the_options.filter = argv[++i];
    } else if (argument == "--seed" && more) {
      the_options.seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (argument[0] != '-' && fault == nullptr) {
      fault = argv[i];
    } else {
      return usage();
    }
  }
  if (reports == (fault != nullptr) || ((workers != processes || namespaces) && !to.peers.empty()) ||
      (processes && !workers) || ((namespaces || hold) && !(processes && reports)))
    return usage();
  the_options.whole = reports && !quick;
  guard_against_hangs();
  if (!reports && processes) return test_processes(fault);
  if (!reports) return workers ? test_workers(fault) : test(fault);
  try {
    if (processes) return report_processes(the_options, to, namespaces, hold) ? 0 : 1;
    return (workers ? report_workers(the_options, to) : report(the_options, to)) ? 0 : 1;
  } catch (const std::runtime_error& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 2;
  }
}
