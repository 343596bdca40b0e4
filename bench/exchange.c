/* What the system takes of a request of one record and its answer: as many bytes as forebay sends and gets, by the same
   system calls of two threads (one sends and waits, one polls, reads and wakes it), and nothing else.

   Usage: exchange COUNT; prints the CPU time of an exchange in microseconds, without the process that answers. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/futex.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { REQUEST = 220, ANSWER = 57 };

static int answered;
static int peer;
static long count;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void prompt(int fd)
{
    int yes = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

static void answer(int listener)
{
    char bytes[8192] = {0};
    int fd = accept(listener, NULL, NULL);
    prompt(fd);
    while (recv(fd, bytes, sizeof bytes, 0) > 0)
        send(fd, bytes, ANSWER, MSG_NOSIGNAL);
    _exit(0);
}

static void *receive(void *unused)
{
    /* A selector waits for two more: its wake-up, and the connection to the bootstrap server. */
    struct pollfd fds[3] = {{eventfd(0, 0), POLLIN, 0}, {eventfd(0, 0), POLLIN, 0}, {peer, POLLIN, 0}};
    struct timespec most = {7, 0};
    char bytes[8192];
    long number;
    for (number = 0; number < count; number++) {
        ppoll(fds, 3, &most, NULL);
        if (recv(peer, bytes, sizeof bytes, 0) <= 0)
            fail("recv");
        __atomic_store_n(&answered, 1, __ATOMIC_SEQ_CST);
        syscall(SYS_futex, &answered, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    }
    return unused;
}

static void ask(void)
{
    static char bytes[REQUEST];
    struct iovec pieces[4] = {{bytes, 25}, {bytes, 83}, {bytes, 109}, {bytes, 3}};
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 4};
    long number;
    for (number = 0; number < count; number++) {
        if (sendmsg(peer, &message, MSG_NOSIGNAL) != REQUEST)
            fail("sendmsg");
        while (!__atomic_load_n(&answered, __ATOMIC_SEQ_CST))
            syscall(SYS_futex, &answered, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
        answered = 0;
    }
}

int main(int arguments, char **values)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    struct rusage used;
    pthread_t receiver;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    count = arguments > 1 ? atol(values[1]) : 1000;
    if (bind(listener, (struct sockaddr *)&at, size) || listen(listener, 1))
        fail("listen");
    getsockname(listener, (struct sockaddr *)&at, &size);
    if (fork() == 0)
        answer(listener);
    peer = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(peer, (struct sockaddr *)&at, size))
        fail("connect");
    prompt(peer);
    if (pthread_create(&receiver, NULL, receive, NULL))
        fail("pthread_create");
    ask();
    pthread_join(receiver, NULL);
    getrusage(RUSAGE_SELF, &used);
    printf("%.3f\n", (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 / count
                         + (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / count);
    return 0;
}
