// Preloaded in front of a Node server that cannot tell which free port it got: says so on stderr, on loopback only.
import { Server } from 'node:http';

const { listen } = Server.prototype;
Server.prototype.listen = function (port, ...rest) {
    const done = rest.find(argument => typeof argument === 'function');
    return listen.call(this, { port, host: '127.0.0.1' }, () => {
        console.error(`node server on http://127.0.0.1:${this.address().port}`);
        done?.();
    });
};
