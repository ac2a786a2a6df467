/* SPDX-License-Identifier: Apache-2.0 */
/* Errors in this language's words: the core marks the names of C in the texts of an error
   (dist_last_error_marked()), and each is replaced here by a name of the language. */

%include "dist_enum_names.i" /* generated */

#if defined(SWIGGO)
%{
#define DIST_SWIG_COLUMN 1
%}
#elif defined(SWIGJAVA)
%{
#define DIST_SWIG_COLUMN 2
%}
#else
%{
#define DIST_SWIG_COLUMN 3
%}
#endif

%{
/* Names of C | Go | Java | Python. "-": the language has no such name. A function needs a row; a parameter or a field
   needs one if it is more than the same words in the manner of the language. */
static const char dist_swig_names[] = R"(
NULL | nil | null | None
destroy | close | close | close
thread | goroutine | thread | thread
DIST_OK | nil | Status.OK | Status.OK
DIST_APPLY_SGD | gradient descent | Optimizer.sgd() | DIST_APPLY_SGD
DIST_APPLY_CALLBACK | ApplyOptions.Function | Optimizer.function() | DIST_APPLY_CALLBACK
dist_batch_free_fn | release function | release function | release callback
dist_done_fn | done function | done function | done callback
dist_strategy_options | Options | StrategyOptions | Strategy
dist_cpu_options | Options | StrategyOptions | Strategy
dist_host_options | Options | StrategyOptions | Strategy
dist_mesh_options | Options | StrategyOptions | Strategy
dist_worker_options | Options | StrategyOptions | Strategy
dist_executor | Options.Executor | StrategyOptions.loopExecutor | -
dist_executor.num_threads | Options.Executor | StrategyOptions.loopExecutor | max_workers
dist_item_options.bytes | - | - | size
dist_item_options | ItemOptions | ItemOptions | Batcher.submit
dist_apply_options | ApplyOptions | Optimizer | Replica.reduce_apply
dist_rpc_server_options | RPCServerOptions | RpcServerOptions | RpcServer
dist_rpc_client_options | RPCClientOptions | RpcClientOptions | RpcClient
dist_ps_variable_options | PSVariableOptions | CoordinatorVariableOptions | Coordinator.create_variable
dist_version | Version | Dist.version | version
dist_has_feature | HasFeature | Dist.hasFeature | has_feature
dist_status_name | Code.String | Dist.statusName | status_name
dist_fail | Errorf | DistException | raise libdist.DistError
dist_enum_name | a String method | Replica.enumName | reduce_op_name
dist_enum_from_name | a Parse function | Replica.enumFromName | reduce_op_from_name
dist_strategy_create | New | Strategy.create | Strategy
dist_strategy_destroy | Strategy.Close | Strategy.close | Strategy.close
dist_strategy_cancel | Strategy.Cancel | Strategy.cancel | Strategy.cancel
dist_strategy_num_replicas | Strategy.NumReplicas | Strategy.numReplicas | Strategy.num_replicas
dist_strategy_shutdown | Strategy.Shutdown | Strategy.close | Strategy.shutdown
dist_strategy_kind_of | Strategy.Kind | Strategy.kind | Strategy.kind
dist_strategy_device | Strategy.Device | Strategy.device | Strategy.device
dist_strategy_parameter_device | Strategy.ParameterDevice | Strategy.parameterDevice | Strategy.parameter_device
dist_canonical_device | CanonicalDevice | Dist.canonicalDevice | canonical_device
dist_strategy_query | Strategy.Properties | Strategy.properties | Strategy.query
dist_strategy_cluster_resolver | Strategy.ClusterResolver | Strategy.clusterResolver | Strategy.cluster_resolver
dist_all_reduce | Replica.AllReduce | Replica.allReduce | Replica.all_reduce
dist_reduce_to_root | Replica.ReduceToRoot | Replica.reduceToRoot | Replica.reduce_to_root
dist_reduce_scatter | Replica.ReduceScatter | Replica.reduceScatter | Replica.reduce_scatter
dist_all_gather | Replica.AllGather | Replica.allGather | Replica.all_gather
dist_gather_to_root | Replica.GatherToRoot | Replica.gatherToRoot | Replica.gather_to_root
dist_broadcast | Replica.Broadcast | Replica.broadcast | Replica.broadcast
dist_scatter_from_root | Replica.ScatterFromRoot | Replica.scatterFromRoot | Replica.scatter_from_root
dist_all_to_all | Replica.AllToAll | Replica.allToAll | Replica.all_to_all
dist_scan | Replica.Scan | Replica.scan | Replica.scan
dist_permute | Replica.Permute | Replica.permute | Replica.permute
dist_barrier | Replica.Barrier | Replica.barrier | Replica.barrier
dist_all_reduce_value | Replica.AllReduceValue | Replica.allReduce | Replica.all_reduce_value
dist_all_gather_value | Replica.AllGatherValue | Replica.allGather | Replica.all_gather_value
dist_group_create | Strategy.NewGroup | Group.create | Strategy.group
dist_group_destroy | Group.Close | Group.close | Group.close
dist_group_size | Group.Size | Group.size | Group.size
dist_group_rank | Group.Rank | Group.rank | Group.rank
dist_communication_options_merge | CommunicationOptions.Merge | CommunicationOptions.merge | CommunicationOptions.merge
dist_reduce_apply | Replica.ReduceApply | Replica.reduceApply | Replica.reduce_apply
dist_run | Strategy.Run | Strategy.run | Strategy.run
dist_run_values | Strategy.RunValues | Strategy.run | Strategy.run_values
dist_replica_id | Replica.ID | Replica.id | Replica
dist_replica_num_replicas | Replica.NumReplicas | Replica.numReplicas | Replica
dist_replica_strategy | Replica.Strategy | Replica.strategy | Replica
dist_replica_parallel_for | Replica.ParallelFor | Replica.parallelFor | Replica.parallel_for
dist_merge_call | Replica.MergeCall | Replica.mergeCall | Replica.merge_call
dist_replica_enter | Strategy.Enter | Strategy.enter | Strategy.enter
dist_replica_leave | Replica.Leave | Replica.leave | Strategy.enter
dist_replica_detach | Options.HopGoroutine | - | -
dist_replica_attach | Options.HopGoroutine | - | -
dist_cancel_create | context.Context | Cancel.create | Cancel
dist_cancel_signal | context.CancelFunc | Cancel.signal | Cancel.signal
dist_cancel_signalled | context.Context | Cancel.isSignalled | Cancel.signalled
dist_cancel_destroy | context.Context | Cancel.close | Cancel.close
dist_work_test | Work.Test | Work.isDone | Work.done
dist_work_wait | Work.Wait | Work.join | Work.result
dist_work_wait_any | WaitAny | Work.anyOf | Work.wait_any
dist_work_cancel | Work.Cancel | Work.cancel | Work.cancel
dist_work_destroy | Work.Close | Plan.close | Work.close
dist_work_start | Work.Start | Plan.start | Work.start
dist_work_ready | Work.Ready | Plan.markReady | Work.ready
dist_instances_open | Strategy.OpenInstances | Strategy.openInstances | Strategy.instances
dist_instances_close | Strategy.CloseInstances | Strategy.closeInstances | Strategy.close_instances
dist_serve | Strategy.Serve | Strategy.serve | Strategy.serve
dist_instance_state | Replica.InstanceState | Replica.instanceState | Replica.instance_state
dist_replica_check | Replica.Check | Replica.check | Replica.check
dist_submit | Strategy.Submit | Strategy.submit | Strategy.submit
dist_request_test | Request.Done | Request.isDone | Request
dist_request_wait | Request.Wait | Request.join | Request.result
dist_request_wait_any | Request.Wait | Request.anyOf | Request.result
dist_request_cancel | Request.Cancel | Request.cancel | Request.cancel
dist_request_user_data | Request.UserData | Request | Request
dist_request_destroy | Request.Wait | Request | Request
dist_completions_create | Strategy.Submit | Request | Request
dist_completions_next | Request.Wait | Request | Request
dist_completions_descriptor | - | - | Request
dist_completions_destroy | - | Request | Request
dist_batcher_create | Strategy.NewBatcher | Batcher.create | Strategy.batcher
dist_batcher_submit | Batcher.Submit | Batcher.submit | Batcher.submit
dist_batcher_count | Batcher.Count | Batcher.numWaiting | Batcher.count
dist_batcher_destroy | Batcher.Close | Batcher.close | Batcher.close
dist_batch_size | Batch.Size | Batch.size | Batch
dist_batch_bucket | Batch.Bucket | Batch.bucket | Batch.bucket
dist_batch_user_data | Batch.UserData | Batch.input | Batch.user_data
dist_batch_state | Batch.State | Batch.state | Batch.state
dist_batch_set_state | Batch.SetState | Batch.setState | Batch.set_state
dist_batch_check | Batch.Check | Batch.check | Batch.check
dist_batch_emit | Batch.Emit | Batch.emit | Batch.emit
dist_batch_end | Batch.End | Batch.end | Batch.end
dist_request_take | Item.Take | Item.take | Item.results
dist_budget_create | NewBudget | Budget.create | Budget
dist_budget_destroy | Budget.Close | Budget.close | Budget.close
dist_versions_create | NewVersions | Versions.create | Versions
dist_versions_publish | Versions.Publish | Versions.publish | Versions.publish
dist_replica_version | SeenVersion | Versions.get | Replica.version
dist_versions_latest | Versions.Latest | Versions.latest | Versions.latest
dist_versions_await | Versions.Await | Versions.await | Versions.wait
dist_versions_destroy | Versions.Close | Versions.close | Versions.close
dist_value_create_tensor | Strategy.NewTensor | Value.createTensor | Strategy.tensor
dist_value_wrap_tensor | Strategy.NewWrappedTensor | Value.wrapTensor | Strategy.value
dist_value_create_per_replica | Strategy.NewPerReplica | Value.createPerReplica | Strategy.per_replica
dist_value_create_mirrored | Strategy.NewMirrored | Value.createMirrored | Strategy.mirrored
dist_value_create_list | Strategy.NewList | Value.createList | Strategy.value
dist_value_create_tuple | Strategy.NewTuple | Value.createTuple | Strategy.value
dist_value_create_dict | Strategy.NewDict | Value.createDict | Strategy.value
dist_value_create_none | Strategy.NewNone | Value.createNone | Strategy.value
dist_value_create_variable | Variable.Value | Value.createVariable | Strategy.value
dist_values_from_function | Strategy.NewPerReplicaFromFunction | Value.fromFunction | Strategy.values_from_function
dist_value_retain | Value.Retain | Value.retain | Value
dist_value_release | Value.Close | Value.close | Value
dist_value_kind_of | Value.Kind | Value.kind | Value.kind
dist_value_size | Value.Len | Value.size | Value
dist_value_item | Value.Item | Value.item | Value.item
dist_value_key | Value.Key | Value.key | Value.keys
dist_value_get | Value.Get | Value.get | Value.get
dist_value_tensor | Value.Tensor | Value.tensor | Value.numpy
dist_value_variable | Value.Variable | Value.variable | Value
dist_value_create_text | Strategy.NewText | Value.createText | Strategy.value
dist_value_wrap_object | Strategy.NewObject | Value.wrapObject | Strategy.value
dist_value_create_composite | Strategy.NewComposite | Value.createComposite | Strategy.composite
dist_value_text | Value.Text | Value.text | Value.text
dist_value_object | Value.Object | Value.object | Value
dist_value_from_dlpack | - | - | Strategy.value
dist_value_to_dlpack | - | - | Value
dist_variable_create | Strategy.NewVariable | Variable.create | Strategy.variable
dist_variable_destroy | Variable.Close | Variable.close | Variable.close
dist_variable_name | Variable.Name | Variable.name | Variable.name
dist_variable_num_copies | Variable.NumCopies | Variable.numCopies | Variable.num_copies
dist_variable_component | Variable.Component | Variable.component | Variable.component
dist_variable_read | Variable.Read | Variable.read | Variable.read
dist_variable_assign | Variable.Assign | Variable.assign | Variable.assign
dist_replica_read | Replica.Read | Variable.read | Replica.read
dist_replica_assign | Replica.Assign | Variable.assign | Replica.assign
dist_replica_variable | Replica.Variable | Replica.variable | Replica.variable
dist_variable_class | Variable.Class | Variable.variableClass | Variable.class_name
dist_variable_synchronization | Variable.Synchronization | Variable.synchronization | Variable.synchronization
dist_variable_aggregation | Variable.Aggregation | Variable.aggregation | Variable.aggregation
dist_variable_copy_name | Variable.CopyName | Variable.copyName | Variable.copy_name
dist_variable_device | Variable.Device | Variable.device | Variable.device
dist_variable_scatter | Variable.Scatter | Variable.scatter | Variable.scatter
dist_replica_assign_value | Replica.AssignValue | Variable.assign | Replica.assign_value
dist_replica_scatter | Replica.Scatter | Variable.scatter | Replica.scatter
dist_reduce | Strategy.Reduce | Strategy.reduce | Strategy.reduce
dist_reduce_to | Strategy.ReduceTo | Strategy.reduceTo | Strategy.reduce_to
dist_batch_reduce_to | Strategy.BatchReduceTo | Strategy.batchReduceTo | Strategy.batch_reduce_to
dist_gather | Strategy.Gather | Strategy.gather | Strategy.gather
dist_update | Strategy.Update | Variable.update | Strategy.update
dist_update_non_slot | Strategy.UpdateNonSlot | Strategy.updateNonSlot | Strategy.update_non_slot
dist_replica_update | Replica.Update | Variable.update | Replica.update
dist_strategy_local_results | Strategy.LocalResults | Strategy.localResults | Strategy.local_results
dist_broadcast_to | Strategy.BroadcastTo | Strategy.broadcastTo | Strategy.broadcast_to
dist_destination_device | Strategy.DestinationDevice | Strategy.destinationDevice | Strategy.destination_device
dist_reduce_op_from_aggregation | Aggregation.ReduceOp | ReduceOp.fromAggregation | reduce_op_from_aggregation
dist_dataset_create_from_tensors | Strategy.NewDataset | Dataset.fromTensors | Strategy.dataset_from_tensors
dist_dataset_create_from_callback | Strategy.NewDatasetFromCallback | Dataset.fromSource | Strategy.dataset_from_callback
dist_input_context_per_replica_batch_size | InputContext.PerReplicaBatchSize | InputContext.perReplicaBatchSize | InputContext.per_replica_batch_size
dist_dataset_create_from_function | Strategy.NewDatasetFromFunction | Dataset.fromFunction | Strategy.dataset_from_function
dist_dataset_destroy | Dataset.Close | Dataset.close | Dataset.close
dist_iterator_create | Dataset.NewIterator | Dataset.iterator | Dataset.__iter__
dist_iterator_position | Iterator.Position | BatchIterator.position | DatasetIterator.position
dist_iterator_create_at | Dataset.NewIteratorAt | Dataset.iterator | Dataset.iterate_from
dist_iterator_next | Iterator.Next | BatchIterator.next | DatasetIterator.__next__
dist_iterator_destroy | Iterator.Close | BatchIterator.close | DatasetIterator.close
dist_dataset_create_from_files | Strategy.NewDatasetFromFiles | Dataset.fromFiles | Strategy.dataset_from_files
dist_batch_sizes_for_worker | BatchSizesForWorker | Dist.batchSizesForWorker | batch_sizes_for_worker
dist_dataset_element_spec | Dataset.ElementSpec | Dataset.elementSpec | Dataset.element_spec
dist_dataset_reduce | Dataset.Reduce | Dataset.reduce | Dataset.reduce
dist_dataset_check_shards | Dataset.CheckShards | Dataset.checkShards | Dataset.check_shards
dist_iterator_next_optional | Iterator.NextOptional | BatchIterator.nextOptional | DatasetIterator.next_optional
dist_strategy_explain | Strategy.Explain | Strategy.explain | Strategy.explain
dist_strategy_write_trace | Strategy.WriteTrace | Strategy.traceJson | Strategy.write_trace
dist_strategy_write_metrics | Strategy.WriteMetrics | Strategy.metricsText | Strategy.write_metrics
dist_strategy_stragglers | Strategy.Stragglers | Strategy.stragglers | Strategy.stragglers
dist_dataset_explain | Dataset.Explain | Dataset.explain | Dataset.explain
dist_value_describe | Value.Describe | Value.describe | Value.describe
dist_variable_describe | Variable.Describe | Variable.describe | Variable.describe
dist_variable_check_drift | Variable.CheckDrift | Variable.checkDrift | Variable.check_drift
dist_metric_create | Strategy.NewMetric | Metric.create | Strategy.metric
dist_metric_update | Replica.UpdateMetric | Metric.update | Replica.update_metric
dist_metric_result | Metric.Result | Metric.result | Metric.result
dist_metric_reset | Metric.Reset | Metric.reset | Metric.reset
dist_metric_kind_of | Metric.Kind | Metric.kind | Metric.kind
dist_metric_name | Metric.Name | Metric.name | Metric.name
dist_metric_variable | Metric.Variable | Metric.variable | Metric.variable
dist_metric_destroy | Metric.Close | Metric.close | Metric.close
dist_average_loss | AverageLoss | Losses.averageLoss | average_loss
dist_scale_regularization_loss | ScaleRegularizationLoss | Losses.scaleRegularizationLoss | scale_regularization_loss
dist_scope_enter | Strategy.EnterScope | Strategy.scope | Strategy.scope
dist_scope_exit | Strategy.ExitScope | Scope.close | Strategy.scope
dist_get_strategy | CurrentStrategy | Strategy.current | get_strategy
dist_has_strategy | HasStrategy | Strategy.hasCurrent | has_strategy
dist_in_cross_replica_context | InCrossReplicaContext | Strategy.isInCrossReplicaContext | in_cross_replica_context
dist_get_replica | CurrentReplica | Replica.current | get_replica
dist_checkpoint_save | Strategy.SaveCheckpoint | Checkpoint.save | Strategy.save_checkpoint
dist_checkpoint_load | Strategy.LoadCheckpoint | Checkpoint.load | Strategy.load_checkpoint
dist_checkpoint_open | Strategy.OpenCheckpoint | Checkpoint.open | Strategy.open_checkpoint
dist_checkpoint_size | Checkpoint.Len | Checkpoint.size | Checkpoint
dist_checkpoint_name | Checkpoint.Name | Checkpoint.name | Checkpoint.names
dist_checkpoint_spec | Checkpoint.Spec | Checkpoint.spec | Checkpoint.spec
dist_checkpoint_read | Checkpoint.Read | Checkpoint.read | Checkpoint.read
dist_checkpoint_map | Checkpoint.Map | Checkpoint.map | Checkpoint.map
dist_checkpoint_map_all | Checkpoint.MapAll | Checkpoint.mapAll | Checkpoint.map_all
dist_checkpoint_num_metadata | Checkpoint.AllMetadata | Checkpoint.metadata | Checkpoint.metadata
dist_checkpoint_metadata_key | Checkpoint.AllMetadata | Checkpoint.metadata | Checkpoint.metadata
dist_checkpoint_metadata | Checkpoint.Metadata | Checkpoint.metadata | Checkpoint.metadata
dist_checkpoint_destroy | Checkpoint.Close | Checkpoint.close | Checkpoint.close
dist_topology_create | NewTopology | Topology.create | Topology
dist_topology_destroy | Topology.Close | Topology.close | Topology
dist_device_assignment_build | Topology.NewDeviceAssignment | DeviceAssignment.create | DeviceAssignment.build
dist_device_assignment_destroy | DeviceAssignment.Close | DeviceAssignment.close | DeviceAssignment
dist_topology_from_host | NewHostTopology | Topology.fromHost | Topology.from_host
dist_topology_mesh_rank | Topology.MeshRank | Topology.meshRank | Topology.mesh_rank
dist_topology_mesh_shape | Topology.MeshShape | Topology.meshShape | Topology.mesh_shape
dist_topology_num_tasks | Topology.NumTasks | Topology.numTasks | Topology.num_tasks
dist_topology_num_devices_per_task | Topology.NumDevicesPerTask | Topology.numDevicesPerTask | Topology.num_devices_per_task
dist_topology_device_coordinates | Topology.DeviceCoordinates | Topology.deviceCoordinates | Topology.device_coordinates
dist_topology_num_missing_devices | Topology.NumMissingDevices | Topology.numMissingDevices | Topology.missing_devices
dist_topology_missing_devices | Topology.MissingDevices | Topology.missingDevices | Topology.missing_devices
dist_topology_task_at | Topology.TaskAt | Topology.taskAt | Topology.task_at
dist_topology_device_at | Topology.DeviceAt | Topology.deviceAt | Topology.device_at
dist_topology_cpu_at | Topology.CPUAt | Topology.cpuAt | Topology.cpu_at
dist_topology_device_name_at | Topology.DeviceNameAt | Topology.deviceNameAt | Topology.device_name_at
dist_topology_host_name_at | Topology.HostNameAt | Topology.hostNameAt | Topology.host_name_at
dist_topology_explain | Topology.Explain | Topology.explain | Topology.explain
dist_device_assignment_create | Topology.NewDeviceAssignmentFromCores | DeviceAssignment.fromCoreAssignment | DeviceAssignment
dist_device_assignment_create_single | Topology.NewSingleCoreDeviceAssignment | DeviceAssignment.create | DeviceAssignment.single
dist_device_assignment_topology | DeviceAssignment.Topology | DeviceAssignment.topology | DeviceAssignment.topology
dist_device_assignment_num_replicas | DeviceAssignment.NumReplicas | DeviceAssignment.numReplicas | DeviceAssignment.num_replicas
dist_device_assignment_num_logical_devices | DeviceAssignment.NumLogicalDevices | DeviceAssignment.numLogicalDevices | DeviceAssignment.num_logical_devices
dist_device_assignment_core_assignment | DeviceAssignment.CoreAssignment | DeviceAssignment.coreAssignment | DeviceAssignment.core_assignment
dist_device_assignment_coordinates | DeviceAssignment.Coordinates | DeviceAssignment.coordinates | DeviceAssignment.coordinates
dist_device_assignment_device | DeviceAssignment.Device | DeviceAssignment.device | DeviceAssignment.device
dist_device_assignment_device_name | DeviceAssignment.DeviceName | DeviceAssignment.deviceName | DeviceAssignment.device_name
dist_device_assignment_host_name | DeviceAssignment.HostName | DeviceAssignment.hostName | DeviceAssignment.host_name
dist_device_assignment_lookup_replicas | DeviceAssignment.LookupReplicas | DeviceAssignment.lookupReplicas | DeviceAssignment.lookup_replicas
dist_partition_check | Partition.Check | Partition.check | Partition.check
dist_partition_shard | Partition.Shard | Partition.shard | Partition.shard
dist_split_to_logical_devices | Replica.SplitToLogicalDevices | Replica.splitToLogicalDevices | Replica.split_to_logical_devices
dist_assign_to_logical_device | Replica.AssignToLogicalDevice | Replica.assignToLogicalDevice | Replica.assign_to_logical_device
dist_replicate_to_logical_devices | Replica.ReplicateToLogicalDevices | Replica.replicateToLogicalDevices | Replica.replicate_to_logical_devices
dist_strategy_num_logical_devices | Strategy.NumLogicalDevices | Strategy.numLogicalDevices | Strategy.num_logical_devices
dist_strategy_device_assignment | Strategy.DeviceAssignment | Strategy.deviceAssignment | Strategy.device_assignment
dist_value_partition | Value.Partition | Value.partition | Value.partition
dist_value_shard | Value.Shard | Value.shard | Value.shard
dist_run_on_devices | Replica.RunOnDevices | Replica.runOnDevices | Replica.run_on_devices
dist_device_replica | Replica.DeviceReplica | Replica.deviceReplica | Replica.device
dist_device_coordinates | Replica.DeviceCoordinates | Replica.deviceCoordinates | Replica.device_coordinates
dist_device_axis | Replica.DeviceAxis | Replica.deviceAxis | Replica.device_axis
dist_device_axis_group | Replica.DeviceAxisGroup | Replica.deviceAxisGroup | Replica.device_axis_group
dist_halo_exchange | Replica.HaloExchange | Replica.haloExchange | Replica.halo_exchange
dist_reshard | Replica.Reshard | Replica.reshard | Replica.reshard
dist_reshard_bytes | ReshardBytes | Partition.reshardBytes | reshard_bytes
dist_cluster_spec_from_json | NewClusterSpecFromJSON | ClusterSpec.fromJson | ClusterSpec.from_json
dist_cluster_spec_create | NewClusterSpecFromJobs | ClusterSpec.create | ClusterSpec
dist_cluster_spec_union | NewUnionClusterSpec | ClusterSpec.fromSpecs | ClusterSpec.union
dist_cluster_spec_destroy | ClusterSpec.Close | ClusterSpec.close | ClusterSpec
dist_cluster_spec_num_jobs | ClusterSpec.NumJobs | ClusterSpec.jobs | ClusterSpec.jobs
dist_cluster_spec_job | ClusterSpec.Jobs | ClusterSpec.jobs | ClusterSpec.jobs
dist_cluster_spec_num_tasks | ClusterSpec.NumTasks | ClusterSpec.numTasks | ClusterSpec.num_tasks
dist_cluster_spec_task_indices | ClusterSpec.TaskIndices | ClusterSpec.taskIndices | ClusterSpec.task_indices
dist_cluster_spec_task_address | ClusterSpec.TaskAddress | ClusterSpec.taskAddress | ClusterSpec.task_address
dist_cluster_spec_is_equal | ClusterSpec.Equal | ClusterSpec.isSame | ClusterSpec
dist_cluster_spec_json | ClusterSpec.JSON | ClusterSpec.toJson | ClusterSpec.json
dist_cluster_validate | ClusterSpec.Validate | ClusterSpec.validate | ClusterSpec.validate
dist_cluster_is_chief | ClusterSpec.IsChief | ClusterSpec.isChief | ClusterSpec.is_chief
dist_cluster_collective_leader | ClusterSpec.CollectiveLeader | ClusterSpec.collectiveLeader | ClusterSpec.collective_leader
dist_cluster_coordination_leader | ClusterSpec.CoordinationLeader | ClusterSpec.coordinationLeader | ClusterSpec.coordination_leader
dist_cluster_worker_count | ClusterSpec.WorkerCount | ClusterSpec.numWorkers | ClusterSpec.worker_count
dist_cluster_id_in_cluster | ClusterSpec.IDInCluster | ClusterSpec.idInCluster | ClusterSpec.id_in_cluster
dist_cluster_should_save_checkpoint | ClusterSpec.ShouldSaveCheckpoint | ClusterSpec.shouldSaveCheckpoint | ClusterSpec.should_save_checkpoint
dist_cluster_should_save_summary | ClusterSpec.ShouldSaveSummary | ClusterSpec.shouldSaveSummary | ClusterSpec.should_save_summary
dist_cluster_should_evaluate | ClusterSpec.ShouldEvaluate | ClusterSpec.shouldEvaluate | ClusterSpec.should_evaluate
dist_cluster_resolver_create_simple | NewSimpleResolver | ClusterResolver.fromSpec | ClusterResolver.simple
dist_cluster_resolver_create_tf_config | NewTFConfigResolver | ClusterResolver.fromTfConfig | ClusterResolver.tf_config
dist_cluster_resolver_create_slurm | NewSlurmResolver | ClusterResolver.fromSlurm | ClusterResolver.slurm
dist_slurm_expand_host_list | SlurmHosts | ClusterResolver.slurmHosts | slurm_hosts
dist_slurm_expand_tasks_per_node | SlurmTasksPerNode | ClusterResolver.slurmTasksPerNode | slurm_tasks_per_node
dist_cluster_resolver_create_kubernetes | NewKubernetesResolver | ClusterResolver.fromKubernetes | ClusterResolver.kubernetes
dist_cluster_resolver_create_union | NewUnionResolver | ClusterResolver.fromResolvers | ClusterResolver.union
dist_cluster_resolver_create_host | NewHostResolver | ClusterResolver.fromFunctions | ClusterResolver.host
dist_cluster_resolver_destroy | ClusterResolver.Close | ClusterResolver.close | ClusterResolver
dist_cluster_resolver_spec | ClusterResolver.Spec | ClusterResolver.spec | ClusterResolver.spec
dist_cluster_resolver_task_type | ClusterResolver.TaskType | ClusterResolver.taskType | ClusterResolver.task_type
dist_cluster_resolver_task_id | ClusterResolver.TaskID | ClusterResolver.taskId | ClusterResolver.task_id
dist_cluster_resolver_rpc_layer | ClusterResolver.RPCLayer | ClusterResolver.rpcLayer | ClusterResolver.rpc_layer
dist_cluster_resolver_environment | ClusterResolver.Environment | ClusterResolver.environment | ClusterResolver.environment
dist_cluster_resolver_master | ClusterResolver.Master | ClusterResolver.master | ClusterResolver.master
dist_cluster_resolver_num_accelerators | ClusterResolver.NumAccelerators | ClusterResolver.numAccelerators | ClusterResolver.num_accelerators
dist_cluster_resolver_gpu_ids | ClusterResolver.GPUIDs | ClusterResolver.gpuIds | ClusterResolver.gpu_ids
dist_cluster_explain | ClusterResolver.Explain | ClusterResolver.explain | ClusterResolver.explain
dist_partitions_fixed_shards | FixedShards | Partitioners.fixedShards | fixed_shards
dist_partitions_min_size | MinSizeShards | Partitioners.minSize | min_size_shards
dist_partitions_max_size | MaxSizeShards | Partitioners.maxSize | max_size_shards
dist_partitions_part | RowsOfPart | Partitioners.rowsOfPart | rows_of_part
dist_partitions_part_of | PartOfRow | Partitioners.partOfRow | part_of_row
dist_network_create | NewNetwork | Network.create | Network
dist_network_destroy | Network.Close | Network.close | Network.close
dist_strategy_reform | Strategy.Reform | Strategy.reform | Strategy.reform
dist_strategy_reform_due | Strategy.ReformDue | Strategy.isReformDue | Strategy.reform_due
dist_set_strategy | SetStrategy | Strategy.setCurrent | set_strategy
dist_colocate_enter | Strategy.Colocate | Strategy.colocate | Strategy.colocate
dist_colocate_exit | Strategy.ExitColocation | Scope.close | Strategy.colocate
dist_variable_created_in_scope | Strategy.CreatedInScope | Variable.isCreatedInScope | Strategy.variable_created_in_scope
dist_value_container | Value.Container | Value.container | Strategy.value_container
dist_cross_device_create | NewCrossDevice | CrossDevice.create | CrossDevice
dist_cross_device_destroy | CrossDevice.Close | CrossDevice.close | CrossDevice.close
dist_cross_device_kind_of | CrossDevice.Kind | CrossDevice.kind | CrossDevice.kind
dist_cross_device_device | CrossDevice.Device | CrossDevice.device | CrossDevice.device
dist_cross_device_reduce | CrossDevice.Reduce | CrossDevice.reduce | CrossDevice.reduce
dist_cross_device_batch_reduce | CrossDevice.BatchReduce | CrossDevice.batchReduce | CrossDevice.batch_reduce
dist_cross_device_broadcast | CrossDevice.Broadcast | CrossDevice.broadcast | CrossDevice.broadcast
dist_cross_device_gather | CrossDevice.Gather | CrossDevice.gather | CrossDevice.gather
dist_rpc_server_create | NewRPCServer | RpcServer.create | RpcServer
dist_rpc_server_register | RPCServer.Register | RpcServer.register | RpcServer.register
dist_rpc_server_start | RPCServer.Start | RpcServer.start | RpcServer.start
dist_rpc_server_address | RPCServer.Address | RpcServer.address | RpcServer.address
dist_rpc_server_destroy | RPCServer.Close | RpcServer.close | RpcServer.close
dist_rpc_client_create | NewRPCClient | RpcClient.create | RpcClient
dist_rpc_client_destroy | RPCClient.Close | RpcClient.close | RpcClient.close
dist_rpc_call | RPCClient.Call | RpcClient.call | RpcClient.call
dist_rpc_begin | RPCClient.Begin | RpcClient.begin | RpcClient.begin
dist_rpc_client_methods | RPCClient.Methods | RpcClient.methods | RpcClient.methods
dist_remote_value_get | RemoteValue.Get | RemoteValue.get | RemoteValue.result
dist_remote_value_ready | RemoteValue.Ready | RemoteValue.isDone | RemoteValue.done
dist_remote_value_cancel | RemoteValue.Cancel | RemoteValue.cancel | RemoteValue.cancel
dist_remote_value_retain | RemoteValue.Get | RemoteValue.future | RemoteValue
dist_remote_value_release | RemoteValue.Close | RemoteValue.close | RemoteValue
dist_coordinator_create | Strategy.NewCoordinator | Coordinator.create | Strategy.coordinator
dist_coordinator_destroy | Coordinator.Close | Coordinator.close | Coordinator.close
dist_coordinator_create_variable | Coordinator.CreateVariable | Coordinator.createVariable | Coordinator.create_variable
dist_coordinator_num_variables | Coordinator.Variables | Coordinator.variables | Coordinator.variables
dist_coordinator_variable_name | Coordinator.Variables | Coordinator.variables | Coordinator.variables
dist_coordinator_variable_spec | Coordinator.VariableSpec | Coordinator.variableSpec | Coordinator.variable_spec
dist_coordinator_variable_part | Coordinator.VariableParts | Coordinator.variableParts | Coordinator.variable_part
dist_coordinator_read | Coordinator.Read | Coordinator.read | Coordinator.read
dist_coordinator_read_rows | Coordinator.ReadRows | Coordinator.readRows | Coordinator.read_rows
dist_coordinator_assign | Coordinator.Assign | Coordinator.assign | Coordinator.assign
dist_coordinator_scatter | Coordinator.Scatter | Coordinator.scatter | Coordinator.scatter
dist_coordinator_update | Coordinator.Update | Coordinator.update | Coordinator.update
dist_coordinator_save | Coordinator.Save | Coordinator.save | Coordinator.save
dist_coordinator_restore | Coordinator.Restore | Coordinator.load | Coordinator.restore
dist_coordinator_schedule | Coordinator.Schedule | Coordinator.schedule | Coordinator.schedule
dist_coordinator_join | Coordinator.Join | Coordinator.join | Coordinator.join
dist_coordinator_done | Coordinator.Done | Coordinator.isDone | Coordinator.done
dist_coordinator_create_per_worker | Coordinator.CreatePerWorker | Coordinator.createPerWorker | Coordinator.create_per_worker
dist_coordinator_query | Coordinator.Stats | Coordinator.stats | Coordinator.query
dist_coordinator_write_trace | Coordinator.WriteTrace | Coordinator.traceJson | Coordinator.write_trace
dist_preemption_handler_create | Strategy.NewPreemptionHandler | PreemptionHandler.create | Strategy.preemption_handler
dist_preemption_handler_destroy | PreemptionHandler.Close | PreemptionHandler.close | PreemptionHandler.close
dist_preemption_notify | PreemptionHandler.Notify | PreemptionHandler.notifyPreemption | PreemptionHandler.notify
dist_preemption_run | PreemptionHandler.Run | PreemptionHandler.run | PreemptionHandler.run
dist_preemption_save_if_preempted | PreemptionHandler.SaveIfPreempted | PreemptionHandler.saveIfPreempted | PreemptionHandler.save_if_preempted
dist_preemption_count_run | PreemptionHandler.CountRun | PreemptionHandler.countRun | PreemptionHandler.count_run
dist_preemption_total_run_calls | PreemptionHandler.TotalRunCalls | PreemptionHandler.totalRunCalls | PreemptionHandler.total_run_calls
dist_cluster_resolver_create_rendezvous | NewRendezvousResolver | ClusterResolver.fromRendezvous | ClusterResolver.rendezvous
dist_server_create | NewServer | Server.create | Server
dist_server_create_local | NewLocalServer | Server.createLocal | Server.local
dist_server_register | Server.Register | Server.register | Server.register
dist_server_register_update | Server.RegisterUpdate | Server.registerUpdate | Server.register_update
dist_server_start | Server.Start | Server.start | Server.start
dist_server_target | Server.Target | Server.target | Server.target
dist_server_join | Server.Join | Server.join | Server.join
dist_server_write_trace | Server.WriteTrace | Server.traceJson | Server.write_trace
dist_server_stop | Server.Stop | Server.stop | Server.stop
dist_server_destroy | Server.Close | Server.close | Server.close
dist_closure_name | Closure.Name | Closure.name | Closure
dist_closure_id | Closure.ID | Closure.id | Closure
dist_closure_worker | Closure.Worker | Closure.worker | Closure
dist_closure_cancel | Closure.Context | Closure.cancel | Closure.cancelled
dist_closure_read | Closure.Read | Closure.read | Closure.read
dist_closure_read_rows | Closure.ReadRows | Closure.readRows | Closure.read_rows
dist_closure_assign | Closure.Assign | Closure.assign | Closure.assign
dist_closure_scatter | Closure.Scatter | Closure.scatter | Closure.scatter
dist_closure_update | Closure.Update | Closure.update | Closure.update
dist_closure_per_worker | Closure.PerWorker | Closure.perWorker | Closure.per_worker
dist_Stragglers_read | - | - | Strategy.stragglers
dist_Text_describe_value | - | - | Value.describe
dist_Text_describe_variable | - | - | Variable.describe
dist_Text_expand_host_list | - | - | slurm_hosts
dist_Text_explain | - | - | Strategy.explain
dist_Text_explain_cluster | - | - | ClusterResolver.explain
dist_Text_explain_dataset | - | - | Dataset.explain
dist_Text_explain_topology | - | - | Topology.explain
dist_Text_write_coordinator_trace | - | - | Coordinator.write_trace
dist_Text_write_metrics | - | - | Strategy.write_metrics
dist_Text_write_server_trace | - | - | Server.write_trace
dist_Text_write_trace | - | - | Strategy.write_trace
dist_quick_all_reduce | - | - | Replica.all_reduce
dist_quick_barrier | - | - | Replica.barrier
dist_quick_broadcast | - | - | Replica.broadcast
dist_rpc_arguments | - | - | RpcClient.begin
dist_run_until | - | - | Strategy.run
accumulate_element_bytes | AccumulateElementBytes | elementBytes | accumulate_element_bytes
copy_of_replica | SharedCopy | copyOfReplica | copy_of_replica
core_assignment | coreAssignment | coreAssignment | core_assignment
cpus | CPUs | cpus | cpus
device_coordinates | deviceCoordinates | deviceCoordinates | device_coordinates
element_bytes | elementBytes | elementBytes | element_bytes
gpus_per_host | GPUsPerHost | gpusPerHost | gpus_per_host
gpus_per_task | GPUsPerTask | gpusPerTask | gpus_per_task
grace_ns | Grace | grace | grace
group | InGroup | group | group
in | in | in | x
initial_fn | Initial | initial | initial
max_shard_bytes | maxShardBytes | maxShardBytes | max_shard_bytes
max_shards | maxShards | maxShards | max_shards
mesh_shape | meshShape | meshShape | mesh_shape
metadata_keys | Metadata | metadata | metadata_keys
metadata_texts | Metadata | metadataTexts | metadata_texts
min_shard_bytes | minShardBytes | minShardBytes | min_shard_bytes
name_space | Namespace | namespace | name_space
num_axes | len(Axes) | axes | len(axes)
num_batch_sizes | len(BatchSizes) | the number of sizes | len(batch_sizes)
num_buckets | len(Buckets) | buckets | len(buckets)
num_cpus | len(CPUs) | cpus | len(cpus)
num_devices | len(Devices) | devices | len(devices)
num_devices_per_task | the number of devices per task | numDevicesPerTask | num_devices_per_task
num_jobs | the number of jobs | the number of jobs | num_jobs
num_partitions | len(Partitions) | the number of partitions | num_partitions
num_parts | numParts | numParts | num_parts
num_replicas | Replicas | numReplicas | num_replicas
num_resolvers | the number of resolvers | the number of resolvers | num_resolvers
num_results | len(Results) | numResults | num_results
num_rows | numRows | numRows | num_rows
num_specs | the number of specs | the number of specs | num_specs
num_states | len(States) | states | len(states)
num_tasks | the number of tasks | numTasks | num_tasks
out_work | Async | outWork | out_work
per_example_loss | perExample | perExampleLoss | per_example_loss
planned | Plan | planned | planned
reduce_element_bytes | ReduceElement | reduceElementBytes | reduce_element_bytes
reduce_fn | ReduceWith | reducer | reduce_fn
reduce_user_data | ReduceWith | reduceUserData | reduce_user_data
replica_id | replicaID | replicaId | replica_id
replica_ids | replicaIDs | replicaIds | replica_ids
request_id | RequestID | requestId | request_id
rpc_layer | RPCLayer | rpcLayer | rpc_layer
stack_size_bytes | StackSizeBytes | stackSizeBytes | stack_size_bytes
stuck_ns | Stuck | stuck | stuck
task_id | TaskID | taskId | task_id
tf_config | TFConfig | tfConfig | tf_config
timeout_ns | Timeout | timeout | timeout
use_spmd_partitioning | UseSPMDPartitioning | useSpmdPartitioning | use_spmd_partitioning
user_data | function | userData | user_data
window_ns | Window | window | window
)";

namespace dist_swig {

/* The name in a table, or an empty one. Fields of a row are separated by " | ". */
static std::string in_table(const std::string &table, const std::string &name) {
  size_t at = table.find("\n" + name + " | ");
  if (at == std::string::npos) return std::string();
  const size_t end = table.find('\n', at + 1);
  for (int column = 0; column < DIST_SWIG_COLUMN; ++column) at = table.find(" | ", at) + 3;
  const std::string found = table.substr(at, std::min(table.find(" | ", at), end) - at);
  return found == "-" ? std::string() : found;
}

static std::string in_tables(const std::string &name) {
  const std::string found = in_table(dist_swig_names, name);
  return found.empty() ? in_table(dist_swig_enum_names, name) : found;
}

/* Writes the words of a name together: "clip_norm" is ClipNorm or clipNorm. */
static std::string camel(const std::string &name, bool upper) {
  std::string text;
  for (const char each : name) {
    if (each != '_') text += upper ? (char)std::toupper((unsigned char)each) : each;
    upper = each == '_';
  }
  return text;
}

static std::string function_name(const std::string &name) {
  const std::string found = in_tables(name);
  return found.empty() ? name : found;
}

/* An options type: "dist_run_options" is RunOptions. */
static std::string type_name(const std::string &name) {
  const std::string found = in_tables(name);
  return found.empty() ? camel(name.substr(std::strlen("dist_")), true) : found;
}

/* The name of a parameter or field. Fields begin with a capital letter in Go. No language has the unit in "timeout_ns". */
static std::string field_name(const std::string &given, bool is_field) {
  const size_t end = given.find('[');
  std::string name = given.substr(0, end);
  const std::string index = end == std::string::npos ? std::string() : given.substr(end);
  const std::string found = in_table(dist_swig_names, name);
  if (!found.empty()) return found + index;
  const size_t unit = name.rfind("_ns");
  const bool is_time = unit != std::string::npos && unit + 3 == name.size();
  if (is_time) name.resize(unit);
  const bool upper = DIST_SWIG_COLUMN == 1 && (is_field || is_time || name.find('_') != std::string::npos);
  return (DIST_SWIG_COLUMN == 3 ? name : camel(name, upper)) + index;
}

/* "dist_run_options.timeout_ns", "options->cpu->num_cpus", "root". */
static std::string path_name(std::string name) {
  std::string owner;
  for (size_t at; (at = name.find_first_of("-.")) != std::string::npos;) {
    const std::string part = name.substr(0, at);
    name.erase(0, at + (name[at] == '-' ? 2 : 1));
    if (DIST_SWIG_COLUMN == 1 && part == "dist_collective_options") owner = "-"; /* they are functions: Timeout() */
    else if (part.compare(0, 5, "dist_") == 0) owner = type_name(part);
    else if (owner.empty() && part == "options") owner = DIST_SWIG_COLUMN == 2 ? part : std::string("-");
    else if (part != "cpu" && part != "host" && part != "mesh" && part != "worker") owner = field_name(part, true);
  }
  const std::string last = field_name(name, !owner.empty());
  return owner.empty() || owner == "-" || DIST_SWIG_COLUMN == 3 ? last : owner + "." + last;
}

/* Whether a name of one word is an option rather than an argument of the function. */
static bool is_option(const std::string &name, const std::string &function) {
  const std::string options = dist_swig_options, row = "\n" + name.substr(0, name.find('['));
  size_t at = options.find(row + "\n");
  if (at != std::string::npos) return true;
  at = options.find(row + " ");
  if (at == std::string::npos) return false;
  return (options.substr(at, options.find('\n', at + 1) - at) + " ").find(" " + function + " ") == std::string::npos;
}

/* A name of C in this language. */
static std::string own_name(const std::string &name, const std::string &function) {
  if (name.size() > 2 && name.compare(name.size() - 2, 2, "()") == 0) {
    const std::string found = function_name(name.substr(0, name.size() - 2));
    return DIST_SWIG_COLUMN == 1 ? found : found + "()";
  }
  const std::string found = in_tables(name);
  const bool is_constant = name.compare(0, 5, "DIST_") == 0 || name.find_first_not_of("-0123456789") == std::string::npos;
  if (!found.empty() || is_constant) return found.empty() ? name : found;
  if (name.find_first_of("-.") != std::string::npos) return path_name(name);
  return name.compare(0, 5, "dist_") == 0 ? type_name(name) : field_name(name, is_option(name, function));
}

/* Replaces the marked names of C in a text. `function` is the function of C whose error the text describes. */
static std::string own_words(const char *marked, const std::string &function) {
  std::string text, name;
  bool in_name = false;
  for (; *marked != '\0'; ++marked) {
    if (*marked != '\x0E' && *marked != '\x0F') {
      (in_name ? name : text) += *marked;
      continue;
    }
    if (in_name) text += own_name(name, function);
    name.clear();
    in_name = *marked == '\x0E';
  }
  return text + name; /* of a text that was cut */
}

/* This thread's latest error, as dist_last_error_info() gives it, in this language's words. */
struct Error {
  Error() {
    if (dist_last_error_marked(&info) != DIST_OK) return;
    message = own_words(info.message, info.function);
    expected = own_words(info.expected, info.function);
    received = own_words(info.received, info.function);
    hint = own_words(info.hint, info.function);
    function = *info.function == '\0' ? std::string() : function_name(info.function);
    parameter = *info.parameter == '\0' ? std::string() : own_name(info.parameter, info.function);
  }
  dist_error_info info = DIST_ERROR_INFO_INIT;
  std::string message, expected, received, hint, function, parameter;
};

}  // namespace dist_swig
%}
