// SPDX-License-Identifier: Apache-2.0
//
// dist/dist.hpp: libdist for C++17.
//
//     dist::strategy strategy(2);
//     strategy.run([](dist::replica replica) {
//       std::vector<float> gradient{1, 2, 3};
//       replica.all_reduce(dist::reduce_op::sum, gradient);
//     });
//
// This header-only library wraps the whole C API in objects that release themselves, exceptions and lambdas. The C
// headers document what each call does. A method has the name of its C function without the parts that the object
// implies: dist_all_reduce(replica, ...) is replica.all_reduce(...).
//
//   - A failing call throws dist::error. An exception thrown by one of your callbacks (a replica, merge or update
//     function, a source, ...) never crosses the C interface. It ends the call that invoked the callback and is
//     rethrown, as the same exception, to the caller of that call. Callbacks whose exceptions nobody could catch, such
//     as the operator of a reduction, must be noexcept.
//   - A type x_ref is a non-owning handle that can be copied freely; the type x owns the object and releases it.
//     Collectives allocate nothing.
//   - Const and immutable data are read through const_tensor. A const_tensor does not convert to tensor, so a call that
//     would write to such data does not compile. A const handle, like a const pointer, does not make its object const.
//   - Options are the structs of the C API, initialized with DIST_..._OPTIONS_INIT, except for collective_options.
//
// <dist/experimental/NAME.hpp> and <dist/tf.hpp> wrap the headers of C with the same names.
#ifndef DIST_DIST_HPP
#define DIST_DIST_HPP

// The order is that of reading. clang-format would sort the includes.
// clang-format off
#include "hpp/error.hpp"          // errors as exceptions
#include "hpp/tensor.hpp"         // views of memory; operators
#include "hpp/names.hpp"          // names of enum values; communication options
#include "hpp/cancel.hpp"         // cancel objects
#include "hpp/strategy.hpp"       // strategies
#include "hpp/budget.hpp"         // budgets and executors
#include "hpp/replica.hpp"        // the API inside a replica function
#include "hpp/run.hpp"            // runs, merge calls, optimizer steps
#include "hpp/collective.hpp"     // groups, collectives, asynchronous work
#include "hpp/serve.hpp"          // requests, each handled by one replica
#include "hpp/batch.hpp"          // requests that are processed together in batches
#include "hpp/version.hpp"        // read-mostly data, replaced while replicas run
#include "hpp/value.hpp"          // values
#include "hpp/variable.hpp"       // variables
#include "hpp/cross_replica.hpp"  // reduce, gather and update from outside replicas
#include "hpp/dataset.hpp"        // datasets
#include "hpp/inspect.hpp"        // traces, library metrics, descriptions
#include "hpp/metric.hpp"         // metrics and losses
#include "hpp/scope.hpp"          // scopes
#include "hpp/checkpoint.hpp"     // checkpoints
#include "hpp/topology.hpp"       // topologies, device assignments
#include "hpp/mesh.hpp"           // logical devices
#include "hpp/cluster.hpp"        // cluster specs, resolvers
#include "hpp/partitioner.hpp"    // partitioners
#include "hpp/workers.hpp"        // replicas in several processes
// clang-format on

#endif  // DIST_DIST_HPP
