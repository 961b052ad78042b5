// SPDX-License-Identifier: GPL-2.0
/*
 * Files straight into LMRs, and back, in sets of pages: Documentation/interfaces/files.rst. The
 * caller collects the pages of a file, or writes pages to it, with the node's gate left and no LMR
 * entered, as that may wait for a disk or for user space. Only lite_transfer() enters the LMR, to
 * move a set that is complete.
 *
 * A work item moves a set while the caller goes on to the next one. It makes one attempt; the
 * caller itself moves what the work item fails at, or has not begun. Sets end in order: after one
 * that failed, later ones do not count.
 *
 * Concurrency: all belongs to the caller, except that from queue_work() to the end of
 * cancel_work_sync() a work item has @op, @buf and @err of its set, and holds the node.
 */
#include <linux/bvec.h>
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/fsnotify.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/pipe_fs_i.h>
#include <linux/sched/xacct.h>
#include <linux/slab.h>
#include <linux/splice.h>
#include <linux/uio.h>
#include <linux/workqueue.h>

#include "memory/io/io.h"
#include "memory/memory.h"
#include "compat.h"
#include "pool.h"
#include "sendfile.h"
#include "wait.h"

/* Pages that a request always gets: as many as the pipe of a thread that uses sendfile(2). */
#define LITE_FILE_PAGES_FREE 16
/* All requests get 1/LITE_FILE_SHARE of memory; of that, 1/LITE_FILE_RESERVE is for root only. */
#define LITE_FILE_SHARE 16
#define LITE_FILE_RESERVE 8
/* Pages written to a file at a time. */
#define LITE_FILE_WRITE_PAGES 16

struct lite_file_run;

/* Pages that are moved by one transfer. */
struct lite_file_set {
	struct work_struct work; /* moves them, if @queued */
	struct lite_file_run *run;
	struct lite_op op;       /* range of the LMR, and how far it came */
	struct lite_buf buf;     /* @pages */
	bool queued;
	bool own;                /* the last page is the set's alone, and may be added to */
	int err;                 /* of moving them */
	u32 n_pages;
	struct page *pages[];    /* with a reference each */
};

struct lite_file_run {
	struct lite_access access; /* the caller's */
	struct lite_access once;   /* the same for a worker: one attempt */
	struct lite_gate *gate;
	const struct cred *cred;   /* the caller's */
	struct file *file;
	bool send;                 /* from the file to the LMR */
	u64 offset;                /* in the LMR, of the next set */
	u64 room;                  /* bytes of the LMR from there on */
	u64 left;                  /* bytes that are in no set yet */
	bool local;                /* all of the LMR is at this node */
	loff_t at;                 /* in the file, of the next set */
	loff_t pos;                /* in the file, of what is written next */
	u64 moved;                 /* bytes of sets that ended, without a gap */
	int err;                   /* of those sets */
	u32 n_pages;               /* of a set, at most */
	u32 n_sets;                /* at a time, at most */
	u64 begun;                 /* sets */
	u64 ended;                 /* sets */
	struct lite_file_set *set[LITE_FILE_SETS_MAX]; /* ring, made when first used */
};

/*
 * Make sure that the set's last page is its own and has room. If the last page has @end bytes, a
 * copy of them replaces it, unless it is the set's own; if @end is 0, it is full, and a page is
 * added. Return: false: no memory.
 */
static bool lite_set_own_end(struct lite_file_set *set, size_t end)
{
	struct page *page;

	if (set->own && end)
		return true;
	page = alloc_page(GFP_KERNEL_ACCOUNT);
	if (!page)
		return false;
	if (end) {
		memcpy_page(page, 0, set->pages[--set->n_pages], 0, end);
		put_page(set->pages[set->n_pages]);
	}
	set->pages[set->n_pages++] = page;
	set->own = true;
	return true;
}

/*
 * Take references to the pages of a pipe buffer, which may be several of one folio. A set is
 * contiguous: only its first page may begin, and its last one end, within a page. Pieces that begin
 * or end elsewhere (whole records of /proc, replies of FUSE) are copied: the file may not give the
 * same ones a second time. Return: 1; 0: the rest does not fit; -ENOMEM.
 */
static int lite_set_take(struct lite_file_set *set, struct pipe_buffer *b)
{
	while (b->len) {
		struct page *page = b->page + (b->offset >> PAGE_SHIFT);
		size_t in = offset_in_page(b->offset);
		size_t n = min_t(size_t, b->len, PAGE_SIZE - in);
		size_t end = set->n_pages ? offset_in_page(set->buf.u + set->op.length) : 0;

		if (!end && set->n_pages == set->run->n_pages)
			return 0;
		if (end || (in && set->n_pages)) {
			if (!lite_set_own_end(set, end))
				return -ENOMEM;
			n = min_t(size_t, n, PAGE_SIZE - end);
			memcpy_page(set->pages[set->n_pages - 1], end, page, in, n);
		} else {
			if (!try_get_page(page))
				return -ENOMEM;
			if (!set->n_pages)
				set->buf.u = in;
			set->pages[set->n_pages++] = page;
			set->own = false;
		}
		set->op.length += n;
		b->offset += n;
		b->len -= n;
	}
	return 1;
}

/* Take over what splicing has put into the thread's pipe. Return: the bytes, or an errno. */
static int lite_set_fill(struct pipe_inode_info *pipe, struct splice_desc *sd)
{
	struct lite_file_set *set = sd->u.data;
	u64 before = set->op.length;
	int ret = 1;

	while (ret > 0 && !pipe_empty(pipe->head, pipe->tail)) {
		struct pipe_buffer *b = &pipe->bufs[pipe->tail & (pipe->ring_size - 1)];

		ret = pipe_buf_confirm(pipe, b) ?: lite_set_take(set, b);
		if (ret > 0) {
			pipe_buf_release(pipe, b);
			pipe->tail++;
		}
	}
	if (set->op.length != before)
		return set->op.length - before;
	/* -ENODATA: the file was truncated. */
	return ret == -ENODATA ? 0 : ret;
}

/* Collect up to @n bytes. Return: the bytes; 0: the end of the file; -ENODEV and others. */
static ssize_t lite_set_collect(struct lite_file_run *run, struct lite_file_set *set, size_t n)
{
	struct splice_desc sd = { .total_len = n, .pos = run->at, .u.data = set };
	ssize_t ret;

	set->op.length = 0;
	lite_gate_leave(run->gate);
	ret = rw_verify_area(READ, run->file, &run->at, n);
	if (ret >= 0)
		ret = splice_direct_to_actor(run->file, &sd, lite_set_fill);
	return lite_gate_enter(run->gate) ? ret : -ENODEV;
}

/* Write a set to the file as far as it was received. Return: 0; -ENODEV and others. */
static int lite_set_write(struct lite_file_run *run, struct lite_file_set *set)
{
	struct bio_vec bv[LITE_FILE_WRITE_PAGES];
	u64 done = 0, end = set->op.result;
	ssize_t ret = 0;

	lite_gate_leave(run->gate);
	while (done < end && ret >= 0) {
		struct iov_iter iter;
		size_t n = 0;
		u32 i;

		for (i = 0; i < LITE_FILE_WRITE_PAGES && done + n < end; i++) {
			bv[i].bv_page = set->pages[(done + n) >> PAGE_SHIFT];
			bv[i].bv_offset = offset_in_page(done + n);
			bv[i].bv_len = min_t(u64, end - done - n, PAGE_SIZE - bv[i].bv_offset);
			n += bv[i].bv_len;
		}
		iov_iter_bvec(&iter, ITER_SOURCE, bv, i, n);
		ret = lite_given_up() ? -EINTR : lite_iter_write(run->file, &iter, &run->pos);
		if (ret == 0)
			ret = -EIO;
		done += max_t(ssize_t, ret, 0);
		cond_resched();
	}
	run->moved += done;
	if (!lite_gate_enter(run->gate))
		return -ENODEV;
	return min_t(ssize_t, ret, 0);
}

static void lite_set_work(struct work_struct *work)
{
	struct lite_file_set *set = container_of(work, struct lite_file_set, work);
	struct lite_file_run *run = set->run;
	/* Operations are scheduled by user: use the caller's credentials. */
	const struct cred *old = override_creds(run->cred);

	set->err = lite_transfer(&run->once, &set->op, &set->buf);
	revert_creds(old);
	percpu_ref_put(run->gate->users);
}

/* The set to begin next, or NULL: no memory. */
static struct lite_file_set *lite_set_get(struct lite_file_run *run)
{
	struct lite_file_set **set = &run->set[run->begun % run->n_sets];

	if (*set)
		return *set;
	*set = kvzalloc(struct_size(*set, pages, run->n_pages), GFP_KERNEL_ACCOUNT);
	if (!*set)
		return NULL;
	INIT_WORK(&(*set)->work, lite_set_work);
	(*set)->run = run;
	(*set)->buf.pages = (*set)->pages;
	return *set;
}

/* Provide pages for @n bytes. Return: the bytes that there are pages for, or -ENOMEM. */
static ssize_t lite_set_alloc(struct lite_file_set *set, size_t n)
{
	while (set->n_pages < DIV_ROUND_UP(n, PAGE_SIZE)) {
		struct page *page = alloc_page(GFP_KERNEL_ACCOUNT);

		if (!page)
			break;
		set->pages[set->n_pages++] = page;
	}
	return min(n, set->n_pages * PAGE_SIZE) ?: -ENOMEM;
}

static void lite_set_put_pages(struct lite_file_set *set)
{
	while (set->n_pages)
		put_page(set->pages[--set->n_pages]);
}

/* Begin to move @n bytes, by a work item unless @now. Return: 0, or an errno of moving them. */
static int lite_set_begin(struct lite_file_run *run, struct lite_file_set *set, size_t n, bool now)
{
	set->op = (struct lite_op){
		.opcode = run->send ? LITE_OP_WRITE : LITE_OP_READ,
		.lh = run->access.lh,
		.offset = run->offset,
		.length = n,
	};
	run->offset += n;
	run->room -= n;
	run->left -= n;
	run->at += n;
	run->begun++;
	set->err = 0;
	set->queued = !now;
	if (now)
		return set->err = lite_transfer(&run->access, &set->op, &set->buf);
	/* From here on @err is the worker's, until lite_set_wait(). */
	percpu_ref_get(run->gate->users);
	queue_work(run->access.ctx->mem->file_wq, &set->work);
	return 0;
}

/* Wait for a set's worker, and move what it has not moved, unless the request is over. */
static void lite_set_wait(struct lite_file_run *run, struct lite_file_set *set)
{
	if (!set->queued)
		return;
	if (cancel_work_sync(&set->work)) {
		percpu_ref_put(run->gate->users);
		set->err = -LITE_EPUTOFF;
	}
	if (!set->err || run->err)
		return;
	if (!run->gate->in)
		set->err = -ENODEV;
	else if (lite_given_up())
		set->err = -EINTR;
	else
		set->err = lite_transfer(&run->access, &set->op, &set->buf);
}

/* End the oldest set. */
static void lite_set_end(struct lite_file_run *run)
{
	struct lite_file_set *set = run->set[run->ended % run->n_sets];
	int err = 0;

	lite_set_wait(run, set);
	run->ended++;
	if (!run->err && run->send)
		run->moved += set->op.result;
	else if (!run->err)
		err = run->gate->in ? lite_set_write(run, set) : -ENODEV;
	/* A device may refuse to write the odd part that came before the other node failed. */
	if (!run->err)
		run->err = err == -ENODEV || !set->err ? err : set->err;
	/* Pages that a device may still write to have another reference: lite_buf_keep(). */
	lite_set_put_pages(set);
}

/* Begin to send a set. Return: 1; 0: the end of the file; or an errno. */
static int lite_send_next(struct lite_file_run *run, struct lite_file_set *set, size_t want)
{
	/* Without room, it is an error only if the file has more. */
	size_t n_max = min_t(u64, want, run->room ?: 1);
	ssize_t n = lite_set_collect(run, set, n_max);
	bool last = n < n_max || n == run->left;

	if (n > 0 && run->room)
		return lite_set_begin(run, set, n, last || run->n_sets == 1) ?: 1;
	lite_set_put_pages(set);
	return n > 0 ? -ERANGE : n;
}

/* Begin to receive a set. Return: 1 or an errno. */
static int lite_receive_next(struct lite_file_run *run, struct lite_file_set *set, size_t want)
{
	ssize_t n = lite_set_alloc(set, want);
	bool only = run->begun == run->ended && n == run->left;

	return n < 0 ? n : lite_set_begin(run, set, n, only || run->n_sets == 1) ?: 1;
}

/* Begin a set. Return: 1; 0: there is none; or an errno. */
static int lite_file_next(struct lite_file_run *run)
{
	/* Sets end where a page of the file does. */
	size_t want = min_t(u64, run->left, run->n_pages * PAGE_SIZE - offset_in_page(run->at));
	struct lite_file_set *set;

	/* Once anything is sent, the file need not be asked whether it has more than fits. */
	if (!run->left || (run->send && !run->room && run->begun))
		return 0;
	if (lite_given_up())
		return -EINTR;
	set = lite_set_get(run);
	if (!set)
		return -ENOMEM;
	return run->send ? lite_send_next(run, set, want) : lite_receive_next(run, set, want);
}

/* Move all sets. Return: 0, or why it went no further. */
static int lite_file_sets(struct lite_file_run *run)
{
	int next = 1;
	u32 i;

	do {
		while (next > 0 && !run->err && run->begun - run->ended < run->n_sets)
			next = lite_file_next(run);
		if (run->begun != run->ended)
			lite_set_end(run);
	} while (run->begun != run->ended || (next > 0 && !run->err));
	for (i = 0; i < run->n_sets && run->set[i]; i++) {
		lite_set_put_pages(run->set[i]);
		kvfree(run->set[i]);
	}
	return run->err ?: min(next, 0);
}

/* Check handle, right and @offset. Sets @room and @local. Return: 0 or an errno. */
static int lite_file_room(struct lite_file_run *run)
{
	struct lite_mapping *m = lite_access_enter_patiently(&run->access);
	u64 length;

	if (IS_ERR(m))
		return PTR_ERR(m);
	length = m->length;
	run->local = !lite_mapping_is_remote(m);
	lite_access_exit(m);
	run->room = length - run->offset;
	return run->offset > length ? -ERANGE : 0;
}

/* Choose the size and number of sets. Return: the pages charged. */
static u32 lite_file_charge(struct lite_file_run *run, const struct lite_ioc_file *arg,
			    struct lite_pool *pool, u32 uid)
{
	u64 bytes = min_t(u64, run->left, SZ_1G) + offset_in_page(run->at);
	u64 pages = DIV_ROUND_UP_ULL(bytes, PAGE_SIZE);

	run->n_pages = min_t(u64, arg->pages ?: LITE_FILE_PAGES, pages);
	run->n_sets = run->n_pages < pages ? arg->sets ?: LITE_FILE_SETS : 1;
	pages = run->n_pages * run->n_sets;
	/* A worker would be in another control group than the caller. */
	if (pages <= LITE_FILE_PAGES_FREE || run->local ||
	    lite_qos_by_cgroup(run->access.ctx->mem->fab->qos))
		run->n_sets = 1;
	pages = run->n_pages * run->n_sets;
	if (pages <= LITE_FILE_PAGES_FREE)
		return 0;
	if (!lite_pool_take(pool, uid, pages, GFP_KERNEL))
		return pages;
	run->n_pages = min_t(u32, run->n_pages, LITE_FILE_PAGES_FREE);
	run->n_sets = 1;
	return 0;
}

/* Account as sendfile(2) does. Writing the file has notified of IN_MODIFY already. */
static void lite_file_account(struct file *file, bool send, u64 moved)
{
	add_rchar(current, moved);
	add_wchar(current, moved);
	inc_syscr(current);
	inc_syscw(current);
	if (send && moved)
		fsnotify_access(file);
}

/*
 * Move bytes from a file to an LMR (@send), or back; the caller holds @file. On success @arg has
 * the new file offset and the bytes moved. @uid, of the initial user namespace, is charged. @gate
 * is left while the file is accessed. May sleep and wait for user space; killable. Return: 0: some
 * bytes were moved, or there were none to move; else an errno, see LITE_IOC_SENDFILE.
 */
int lite_file_move(struct lite_ctx *ctx, struct lite_ioc_file *arg, struct file *file, bool send,
		   u32 uid, struct lite_gate *gate)
{
	struct lite_pool *pool = &ctx->mem->fab->pools[LITE_POOL_FILE_PAGES];
	struct lite_file_run run = {
		.access = {
			.ctx = ctx,
			.lh = arg->lh,
			.right = send ? LITE_RIGHT_WRITE : LITE_RIGHT_READ,
		},
		.gate = gate,
		.cred = current_cred(),
		.file = file,
		.send = send,
		.offset = arg->offset,
		.left = arg->length,
		.at = arg->file_offset,
		.pos = arg->file_offset,
	};
	u32 charged;
	int err;

	arg->moved = 0;
	if (arg->pages > LITE_FILE_PAGES_MAX || arg->sets > LITE_FILE_SETS_MAX)
		return -EINVAL;
	if (!(file->f_mode & (send ? FMODE_READ : FMODE_WRITE)))
		return -EBADF;
	if (!arg->length)
		return 0;
	if (!(file->f_mode & FMODE_LSEEK) || run.at < 0)
		return -EINVAL;
	if (send && run.at >= file_inode(file)->i_sb->s_maxbytes)
		return -EOVERFLOW;
	if (send)
		run.left = min_t(u64, run.left, file_inode(file)->i_sb->s_maxbytes - run.at);
	err = lite_file_room(&run);
	if (err)
		return err;
	if (!send)
		run.left = min(run.left, run.room);
	run.once = run.access;
	run.once.task = current;
	charged = lite_file_charge(&run, arg, pool, uid);
	err = lite_file_sets(&run);
	lite_pool_give(pool, uid, charged);
	lite_file_account(file, send, run.moved);
	if (!run.moved)
		return err;
	arg->moved = run.moved;
	arg->file_offset = send ? arg->file_offset + run.moved : run.pos;
	return 0;
}

/* Limit what all requests of a node hold: see limits.rst. */
void lite_file_pool_init(struct lite_memory *mem)
{
	u64 limit = totalram_pages() / LITE_FILE_SHARE;

	lite_pool_init(&mem->fab->pools[LITE_POOL_FILE_PAGES], limit, limit / LITE_FILE_RESERVE);
}
