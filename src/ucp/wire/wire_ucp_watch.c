/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucp/wire/wire_ucp_int.h>
#include <ucs/sys/proc/dead.h>
#include <ucs/sys/uid.h>

#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Whether peers on this node live. UCX's shared memory transports look whether
 * the peer's process is there, and it is for as long as its parent has not
 * waited for it; launchers may not do so until the job ends. After an exec() the process
 * is there, too.
 */

static pthread_once_t ucp_wire_ucp_once = PTHREAD_ONCE_INIT;
static void *ucp_wire_ucp_page;

/* It stays: a peer whose wire has ended in order has not failed. Nobody reads it, so it
 * takes no memory. */
static void ucp_wire_ucp_map_page(void)
{
    void *page = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_NONE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    ucp_wire_ucp_page = (page == MAP_FAILED) ? NULL : page;
}

void ucp_wire_ucp_process_self(ucp_wire_ucp_process_t *process)
{
    struct stat space;

    process->host  = ucs_get_system_id();
    process->space = 0;
    process->pid   = getpid();
    pthread_once(&ucp_wire_ucp_once, ucp_wire_ucp_map_page);
    process->page  = (uintptr_t)ucp_wire_ucp_page;
    if (stat("/proc/self/ns/pid", &space) == 0) {
        process->space = space.st_ino;
    }
}

int64_t ucp_wire_ucp_watchable(const ucp_wire_ucp_process_t *self,
                               const ucp_wire_ucp_process_t *peer)
{
    if ((self->host == 0) || (self->space == 0) || (self->host != peer->host) ||
        (self->space != peer->space) || (self->pid == peer->pid)) {
        return 0;
    }
    return ucs_pid_has_program(peer->pid) ? peer->pid : 0;
}

static int ucp_wire_ucp_is_lost(const ucp_wire_ucp_t *self,
                                const ucp_wire_ucp_peer_t *peer)
{
    return ucs_pid_is_dead(peer->pid) ||
           ((peer->page != 0) && (self->process.page != 0) &&
            ucs_pid_has_lost(peer->pid, (void*)peer->page, sysconf(_SC_PAGESIZE),
                             (void*)self->process.page));
}

void ucp_wire_ucp_watch(ucp_wire_ucp_t *self, uint64_t now)
{
    ucp_wire_ucp_peer_t *peer;
    unsigned i;

    if (now < self->watched + UCP_WIRE_WATCH_SECONDS * 1000000000ull) {
        return;
    }
    self->watched = now;
    for (i = 0; i < self->super.num_peers; ++i) {
        peer = &self->peers[i];
        if ((peer->pid != 0) && (peer->ep != NULL) &&
            (peer->status == UCS_OK) && ucp_wire_ucp_is_lost(self, peer)) {
            peer->status = UCS_ERR_CONNECTION_RESET;
            ++self->num_failed;
        }
    }
}
