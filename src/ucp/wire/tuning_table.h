/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCP_WIRE_TUNING_TABLE_H_
#define UCP_WIRE_TUNING_TABLE_H_

/*
 * The constants that steer wire_ucp; the headers of all wires are bounded alike.
 */

/** Messages have this number among UCP's active messages; the worker is ours
 *  alone, so any would do. */
#define UCP_WIRE_AM_ID 0

/** Bytes of a caller's header, a key for two domains has some 100. Half: a
 *  message that is registered in more than eight pieces is not read by its
 *  receiver, but written. Double: the same of seventeen. */
#define UCP_WIRE_MAX_HEADER 2048

/** Bytes of a payload. All of it travels eagerly, in UCP's fragments of 8 KiB
 *  or so. Half: twice the messages for what a caller copies. Double: a message
 *  holds up those behind it for longer. */
#define UCP_WIRE_MAX_PAYLOAD (64 * 1024)

/** Time between looks whether peers live (UCX_KEEPALIVE_INTERVAL, which UCX has at
 *  20 s). Half: twice the looks, some system calls or empty messages for each peer.
 *  Double: operations to one that died stay open a second longer. */
#define UCP_WIRE_KEEPALIVE "1s"

/** Seconds that the end of a wire waits for operations and for endpoints to
 *  close in peace, before they are closed by force. Half: a peer that is
 *  descheduled for long may lose what was sent to it. Double: the end of a job
 *  in which a peer has died is later. */
#define UCP_WIRE_CLOSE_SECONDS 10

/** Seconds that a fork waits at most for a thread of ours that is inside UCX, which may
 *  wait for the thread that forks. Half: that fork takes half
 *  as long. Double: twice. */
#define UCP_WIRE_FORK_WAIT_SECONDS 1

#endif
