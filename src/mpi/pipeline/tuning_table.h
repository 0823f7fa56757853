/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef MPI_PIPELINE_TUNING_TABLE_H_
#define MPI_PIPELINE_TUNING_TABLE_H_

/*
 * Constants that steer the layer, each with what half and double do.
 */

/** Bytes of a message from which on it goes by the pipeline. Half: messages
 *  that are copied for the larger part go a longer way. Double: twice as much
 *  stays registered by the MPI. Above the largest eager part, so that the end
 *  of a send tells that the receive has begun, as MPI_Ssend wants it. */
#define MPI_LAYER_MIN_BYTES (256 * 1024)

/** Looks into posted receives' buffers are made every so many steps while a
 *  message waits for its herald. Half: twice the system calls while a program
 *  is in a barrier. Double: such a message begins a microsecond later. */
#define MPI_LAYER_PEEK_STEPS 8

/** Calls of UCP's progress of which one is a step while no request needs any:
 *  what ended early may have left a message behind. Half: twice the time that
 *  short messages pay for it. Double: the peer waits longer. */
#define MPI_LAYER_IDLE_CALLS 16

/** Steps without anything done after which a thread that waits yields its
 *  core. Half: more system calls. Double: with more ranks than cores the one
 *  that is waited for comes later. */
#define MPI_LAYER_IDLE_STEPS 64

#endif
