// SPDX-License-Identifier: Apache-2.0
//
// dist/dist.hpp: libdist for C++17, header only, over the C API alone, and all of it: objects that end themselves,
// exceptions, lambdas. What each call does is said in the C headers; a method has its C function's name, without what the
// object says already: dist_all_reduce(replica, ...) is replica.all_reduce(...).
//
//     dist::strategy strategy(2);
//     strategy.run([](dist::replica replica) {
//       std::vector<float> gradient{1, 2, 3};
//       replica.all_reduce(dist::reduce_op::sum, gradient);
//     });
//
//   - A failing call throws dist::error. An exception that leaves a function of the host's (a replica's, a merge or update
//     function, a source, ...) never crosses the C interface: it ends what called it, and arrives, as itself, at the caller
//     of that. Where nobody could catch it, as inside a reduction's operator, the function must be noexcept.
//   - What is named x_ref is a handle to copy at will; x itself ends what it holds. Collectives allocate nothing.
//   - What is const, or immutable as a value is, is read: as a const_tensor, from which no tensor comes, so that a call that
//     would write to it does not compile. A handle's const is a pointer's: it says nothing of what the handle names.
//   - The baseline needs no macro; DIST_EXPERIMENTAL adds the rest, also at a second include: types.h. Classes are the same
//     in both cases: methods that are marked "Experimental." are declared without it too, and defined with it alone.
//   - Options are C's own structs, begun with DIST_..._OPTIONS_INIT, but for collective_options.

// Without a guard: each header has its own, one for each part.
// In the order in which they are read. clang-format would sort them.
// clang-format off
#include "hpp/error.hpp"          // what went wrong, as exceptions
#include "hpp/tensor.hpp"         // views of memory, operators
#include "hpp/names.hpp"          // names of numbers, options of communication
#include "hpp/cancel.hpp"         // what asks to end early
#include "hpp/strategy.hpp"       // strategies
#include "hpp/budget.hpp"         // whose threads they take
#include "hpp/replica.hpp"        // inside a replica
#include "hpp/run.hpp"            // runs, merge calls, optimizer steps
#include "hpp/collective.hpp"     // groups, collectives, work
#include "hpp/serve.hpp"          // requests, each on one free replica
#include "hpp/batch.hpp"          // requests that are answered together
#include "hpp/version.hpp"        // what is replaced while replicas read it
#include "hpp/value.hpp"          // values
#include "hpp/variable.hpp"       // variables
#include "hpp/cross_replica.hpp"  // from outside: reduce, gather, update
#include "hpp/dataset.hpp"        // datasets
#include "hpp/inspect.hpp"        // looking inside
#include "hpp/metric.hpp"         // metrics and losses
#include "hpp/scope.hpp"          // scopes
#include "hpp/checkpoint.hpp"     // checkpoints
#include "hpp/topology.hpp"       // topologies, device assignments
#include "hpp/mesh.hpp"           // logical devices
#include "hpp/cluster.hpp"        // cluster specs, resolvers
#include "hpp/partitioner.hpp"    // partitioners
#include "hpp/workers.hpp"        // several workers
#include "hpp/rpc.hpp"            // methods of other processes
#include "hpp/server.hpp"         // parameter servers, workers that run closures
#include "hpp/coordinator.hpp"    // who gives them work
#include "hpp/preemption.hpp"     // checkpoints before a machine is lost
#undef DIST_EXPERIMENTAL_HINTS_OFF
#include "experimental_hints.h"   // how a compiler explains that a C name needs DIST_EXPERIMENTAL
// clang-format on
