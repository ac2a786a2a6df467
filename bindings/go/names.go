// SPDX-License-Identifier: Apache-2.0

package dist

import "libdist.example/dist/internal/cdist"

// ReduceOp says how contributions become one.
type ReduceOp int

// The operators. ReduceUser is the program's own: see ReduceWith.
const (
	Sum        ReduceOp = 1
	Mean       ReduceOp = 2
	Min        ReduceOp = 3
	Max        ReduceOp = 4
	Prod       ReduceOp = 5
	ReduceUser ReduceOp = 6
)

// Communication says which implementation a program asks for. The bits are the same.
type Communication int

// The implementations.
const (
	CommunicationAuto Communication = 0
	CommunicationRing Communication = 1
	CommunicationNCCL Communication = 2 // accepted; libdist's own, since its devices are host CPUs
)

// CrossDeviceKind says who reduces values from outside runs. The bits are the same, but for the host's own.
type CrossDeviceKind int

// The kinds of cross-device operations.
const (
	CrossDeviceDefault              CrossDeviceKind = 0
	CrossDeviceReductionToOneDevice CrossDeviceKind = 1 // with an operator of the program's, where it gives one
	CrossDeviceHierarchicalCopy     CrossDeviceKind = 2
	CrossDeviceNCCL                 CrossDeviceKind = 3
	CrossDeviceCollective           CrossDeviceKind = 4
	CrossDeviceHost                 CrossDeviceKind = 5 // functions of the program's
)

// Synchronization says when the copies of a variable are brought together.
type Synchronization int

// The synchronizations.
const (
	SynchronizationAuto    Synchronization = 0 // the strategy's choice: on writing
	SynchronizationNone    Synchronization = 1
	SynchronizationOnWrite Synchronization = 2 // assignments inside replicas are aggregated; all copies stay equal
	SynchronizationOnRead  Synchronization = 3 // each replica writes its own copy; a read from outside aggregates
)

// Aggregation says what an assignment inside replicas does with R given values.
type Aggregation int

// The aggregations.
const (
	AggregationNone             Aggregation = 0 // each replica writes its own copy
	AggregationSum              Aggregation = 1
	AggregationMean             Aggregation = 2
	AggregationOnlyFirstReplica Aggregation = 3 // replica 0's value goes to all
)

// InputMode says how many pipelines make the batches.
type InputMode int

// The input modes.
const (
	PerWorker  InputMode = 0 // one; its elements are dealt to the replicas
	PerReplica InputMode = 1 // one for each replica
)

// ShardPolicy says how a dataset is divided between workers.
type ShardPolicy int

// The policies.
const (
	ShardOff  ShardPolicy = -1 // every worker sees all
	ShardAuto ShardPolicy = 0  // ShardFile where the source reads files, else ShardData
	ShardFile ShardPolicy = 1  // file i goes to worker i mod W
	ShardData ShardPolicy = 2  // element i goes to worker i mod W
	ShardHint ShardPolicy = 3  // where the source says that it is to be done
)

// String is TensorFlow's name, "MEAN"; "" for a number that has none.
func (op ReduceOp) String() string { return cdist.Dist_reduce_op_name(int32Of(int(op))) }

// String is TensorFlow's name, "RING"; "" for a number that has none.
func (c Communication) String() string { return cdist.Dist_communication_name(int32Of(int(c))) }

// String is TensorFlow's name, "HIERARCHICAL_COPY"; "" for a number that has none.
func (k CrossDeviceKind) String() string { return cdist.Dist_cross_device_name(int32Of(int(k))) }

// String is TensorFlow's name, "ON_READ"; "" for a number that has none.
func (s Synchronization) String() string { return cdist.Dist_synchronization_name(int32Of(int(s))) }

// String is TensorFlow's name, "ONLY_FIRST_REPLICA"; "" for a number that has none.
func (a Aggregation) String() string { return cdist.Dist_aggregation_name(int32Of(int(a))) }

// String is TensorFlow's name, "PER_WORKER"; "" for a number that has none.
func (m InputMode) String() string { return cdist.Dist_input_mode_name(int32Of(int(m))) }

// String is TensorFlow's name, "AUTO"; "" for a number that has none.
func (p ShardPolicy) String() string { return cdist.Dist_shard_policy_name(int32Of(int(p))) }

// fromName looks a name up by one of the generated functions.
func fromName[T ~int](look func(string, *int32) error, name string) (T, error) {
	var number int32
	err := look(name, &number)
	return T(number), fromNative(err)
}

// ReduceOpFromName is the operator of TensorFlow's name, "SUM" or "MEAN" in any case.
func ReduceOpFromName(name string) (ReduceOp, error) {
	return fromName[ReduceOp](cdist.Dist_reduce_op_from_name, name)
}

// ReduceOpFromAggregation is the operator by which a variable of this aggregation is reduced.
func ReduceOpFromAggregation(aggregation Aggregation) (ReduceOp, error) {
	var op int32
	err := cdist.Dist_reduce_op_from_aggregation(int32Of(int(aggregation)), &op)
	return ReduceOp(op), fromNative(err)
}

// CommunicationFromName is the implementation of a name, in any case.
func CommunicationFromName(name string) (Communication, error) {
	return fromName[Communication](cdist.Dist_communication_from_name, name)
}

// SynchronizationFromName is the synchronization of a name, in any case.
func SynchronizationFromName(name string) (Synchronization, error) {
	return fromName[Synchronization](cdist.Dist_synchronization_from_name, name)
}

// AggregationFromName is the aggregation of a name, in any case.
func AggregationFromName(name string) (Aggregation, error) {
	return fromName[Aggregation](cdist.Dist_aggregation_from_name, name)
}

// InputModeFromName is the input mode of a name, in any case.
func InputModeFromName(name string) (InputMode, error) {
	return fromName[InputMode](cdist.Dist_input_mode_from_name, name)
}

// ShardPolicyFromName is the policy of a name, in any case.
func ShardPolicyFromName(name string) (ShardPolicy, error) {
	return fromName[ShardPolicy](cdist.Dist_shard_policy_from_name, name)
}
