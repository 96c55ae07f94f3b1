import { Server } from 'node:net'

// For servers that have no option for it: they listen on this machine only, and tell their port.
const { listen } = Server.prototype
Server.prototype.listen = function (port, ready) {
  this.once('listening', () => console.log(`port ${this.address().port}`))
  return listen.call(this, Number(port), '127.0.0.1', ready)
}
